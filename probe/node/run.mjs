/**
 * `node run.mjs --home FOLDER --json-spec -`: one scripted call on the build in that folder.
 *
 * The child's side of sinkprobe's runner: the document `{"scenario": …, "trace": PATH}` is the
 * first line of stdin, and the call ends early when stdin does. What there is to say comes as JSON
 * lines on stdout; the exit code says nothing.
 */

import { createWriteStream, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { attach } from './index.mjs';
import { Call } from './scenarios/call.mjs';
import { Release } from './scenarios/releases.mjs';
import { ScenarioError } from './scenarios/signals.mjs';

const KEY = 'sinkprobe';

function say(said) {
  try {
    writeSync(1, `${JSON.stringify({ [KEY]: said })}\n`);
  } catch {
    // Nobody may be left to hear it; the call closes its trace all the same.
  }
}

/** Keeps LiveKit's logging, which goes to stdout, for the file beside the trace. */
function keepLog() {
  const kept = [];
  let file = null;
  process.stdout.write = (chunk, encoding, done) => {
    if (file) file.write(chunk);
    else kept.push(chunk);
    const called = typeof encoding === 'function' ? encoding : done;
    called?.();
    return true;
  };
  return (path) => {
    file = createWriteStream(path);
    file.on('error', () => {}); // a log that can't be written is no reason to end the call
    for (const chunk of kept.splice(0)) file.write(chunk);
  };
}

function headerOf({ name, call }) {
  return { scenario: name, ...call };
}

async function serve(home, { scenario, trace, sink, driver }) {
  if (sink || driver) {
    throw new ScenarioError(
      'a sink or driver of your own: expected none, calls on Node builds use the room output',
    );
  }
  const logInto = keepLog();
  const release = await Release.load(home);
  release.agents.initializeLogger({ pretty: false, level: 'debug' });
  const call = new Call(scenario, release, (step) => say({ step }));
  const run = headerOf(scenario);
  const recording = attach(call.session, trace, { rtc: release.rtc, from: [home], run });
  stop = () => recording.close();
  try {
    await recording.ready;
    const log = recording.path.replace(/(\.jsonl)?$/, '.log');
    logInto(log);
    say({ trace: recording.path, log });
    await call.run(recording);
  } finally {
    recording.close();
  }
  const refused = recording.faults.write_failed;
  if (refused) {
    throw new ScenarioError(
      `${recording.path}: expected to write the whole trace, found the disk refusing it ` +
        `${refused} times; what is there is cut`,
    );
  }
  say({ done: 'yes' });
}

let stop = () => {};

/** Ends the call early, its trace closed: the user's wish, or nobody is left who wanted it. */
function leave() {
  stop();
  say({ error: 'the call was stopped' });
  process.exit(0);
}

/** The folder on the command line; whatever else is there is wrong usage. */
function homeOf(options) {
  try {
    const { values } = parseArgs({ options });
    if (values.home && values['json-spec'] === '-') return resolve(values.home);
  } catch {
    // an option that is none
  }
  process.stderr.write('usage: node run.mjs --home FOLDER --json-spec -\n');
  process.exit(2);
}

const home = homeOf({ home: { type: 'string' }, 'json-spec': { type: 'string' } });
process.on('SIGINT', leave);
const lines = createInterface({ input: process.stdin });
lines.on('close', leave);
lines.once('line', async (line) => {
  try {
    await serve(home, JSON.parse(line));
  } catch (error) {
    const known = error instanceof ScenarioError;
    const [reason] = `${known ? error.message : error}`.split('\n', 1);
    say({ error: known ? reason : `the call broke down (${reason})` });
    process.stderr.write(`${error?.stack ?? error}\n`);
  }
  // Leaves without clean-up, in which the native library can abort or hang.
  process.exit(0);
});
