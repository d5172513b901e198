/**
 * A call that the probe joins while the agent speaks, and leaves before it is over:
 * `node node_late.mjs HOME DOCUMENT TRACE`. Prints as JSON what the objects of the call had of
 * their own before and after.
 */

import { createWriteStream, readFileSync, writeSync } from 'node:fs';

import { attach } from '../probe/node/index.mjs';
import { Call } from '../probe/node/scenarios/call.mjs';
import { Release } from '../probe/node/scenarios/releases.mjs';

const [home, document, trace] = process.argv.slice(2);
const log = createWriteStream(`${trace}.log`);
process.stdout.write = (chunk) => log.write(chunk);

const release = await Release.load(home);
release.agents.initializeLogger({ pretty: false, level: 'info' });
let recording = null;
let before = [];
let after = [];

function own() {
  const { output } = call.session;
  const held = [call.session, output, output.audio, output.audio.audioSource];
  const heard = [call.session, output.audio].map((emitter) => emitter.eventNames());
  return [...held.map((owner) => Object.getOwnPropertyNames(owner)), ...heard];
}

const call = new Call(JSON.parse(readFileSync(document, 'utf8')), release, (step) => {
  if (step === 'wait') {
    before = own();
    recording = attach(call.session, trace, { rtc: release.rtc, from: [home] });
  } else if (step === 'control') {
    recording.close();
    after = own();
  }
});
await call.run({ put: () => {}, mark: () => {} });
writeSync(1, JSON.stringify({ before, after, faults: recording.faults }));
process.exit(0);
