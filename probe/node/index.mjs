/**
 * Counts what an agent's audio sink is given, hands on and sends, into a trace that `sinkprobe
 * report` reads.
 *
 *     import { attach } from 'sinkprobe-node';
 *     const recording = attach(session, 'call.jsonl');
 *     await recording.ready;
 *     await session.start({ agent, room });
 *
 * Importing this loads nothing of LiveKit: `@livekit/rtc-node` is taken from the agent's own
 * installation, because a second copy in one process takes it down.
 */

export { attach, Recording } from './attach.mjs';
