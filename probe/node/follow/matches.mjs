/** What was decided about the chunks that were held, handed out chunk by chunk. */

/** Behind the last place found in parts; null: there was none. */
export function reachedBy(parts) {
  const placed = parts.findLast(([position, values]) => position !== null && values > 0);
  return placed ? placed[0] + placed[1] : null;
}

/**
 * One match for each chunk: `{ key, parts, ambiguous, added, habit, skipped }`.
 *
 * Parts say where the values came from, in order, as `[position, values]`, a position of null being
 * content never seen upstream. Then how many values are in doubt and how many the sink put in; what
 * it does to the audio, where the parts rest on that; and silence upstream, as `[position,
 * values]`, that was passed over in front of them.
 *
 * @param {object[]} chunks what is held.
 * @param {object} decision
 * @param {Array} decision.parts of the held values, in order.
 * @param {Array} decision.doubts stretches of the held values whose place is in doubt.
 * @param {Array} decision.added stretches whose parts without a place the sink put in.
 * @param {Array} decision.habits what was done to the held values from one of them on, to the end
 *     of its chunk.
 * @param {Upstream} upstream what was captured.
 * @param {number} start where the held values begin if they continue.
 */
export function matchesOf(chunks, { parts, doubts, added = [], habits = [] }, upstream, start) {
  const rest = parts.filter(([, values]) => values > 0);
  let reached = start;
  let stop = 0;
  return chunks.map(({ key, values }) => {
    const begun = stop;
    stop += values;
    const own = taken(rest, values);
    const skipped = [];
    for (const [position, count] of own) {
      if (position === null) continue;
      if (upstream.isSkipped(reached, position)) skipped.push([reached, position - reached]);
      reached = position + count;
    }
    const strange = own.reduce((sum, [at, count]) => sum + (at === null ? count : 0), 0);
    return {
      key,
      parts: own,
      ambiguous: within(doubts, begun, stop),
      added: Math.min(within(added, begun, stop), strange),
      habit: habits.find(([at]) => begun <= at && at < stop)?.[1] ?? null,
      skipped,
    };
  });
}

/** Takes so many values from the front of the parts. */
function taken(parts, values) {
  const own = [];
  for (let missing = values; missing > 0; ) {
    const [position, held] = parts[0];
    const count = Math.min(held, missing);
    own.push([position, count]);
    missing -= count;
    if (count === held) parts.shift();
    else parts[0] = [position === null ? null : position + count, held - count];
  }
  return own;
}

function within(stretches, start, stop) {
  return stretches.reduce(
    (sum, [since, to]) => sum + Math.max(Math.min(to, stop) - Math.max(since, start), 0),
    0,
  );
}
