/** What the taps note of a call, before it is forwarded and when it has ended. */

/** Geometry and content of a frame, copied: its memory is the caller's. */
export function readFrame(frame) {
  const samples = Math.max(Math.trunc(frame.samplesPerChannel) || 0, 0);
  const channels = Math.max(Math.trunc(frame.channels) || 1, 1);
  const expected = samples * channels;
  const data = frame.data ?? new Int16Array(0);
  const values = new Int16Array(expected);
  values.set(data.length > expected ? data.subarray(0, expected) : data);
  const dataBytes = data.length === expected ? undefined : data.byteLength;
  return { frame: { samples, channels, rateHz: Math.trunc(frame.sampleRate), dataBytes }, values };
}

/**
 * Has `record` say how a call ended, and returns what it returned, untouched.
 *
 * A promise is handed on as it is: nothing waits that would not wait without the probe.
 */
export function forwarded(record, clock, call) {
  let result;
  try {
    result = call();
  } catch (error) {
    ended(record, clock, 'raised', error);
    throw error;
  }
  if (typeof result?.then === 'function') {
    result.then(
      () => ended(record, clock, 'returned'),
      (error) => ended(record, clock, 'raised', error),
    );
  } else ended(record, clock, 'returned');
  return result;
}

function ended(record, clock, end, error) {
  record.ended = clock.now();
  if (error !== undefined) {
    record.error = error?.name ?? typeof error;
    record.detail = ownWords(error);
  }
  record.end = end;
}

const MAX_DETAIL = 200; // characters of an error's text that are kept
const WORDLESS = /^[^\n]*[\\/]@livekit[\\/]rtc-node[\\/][^\n]*[\\/]audio_\w+\.[cm]?js/;

/**
 * What an error says, where LiveKit's own code for audio made it: that quotes no word of the call.
 * Undefined elsewhere.
 */
function ownWords(error) {
  try {
    const { message, stack } = error;
    const frames = stack.slice(stack.indexOf(message) + message.length).trimStart();
    if (!message || !WORDLESS.test(frames)) return undefined;
    return message.length <= MAX_DETAIL ? message : `${message.slice(0, MAX_DETAIL - 1)}…`;
  } catch {
    return undefined; // no error, or one that is not like others
  }
}
