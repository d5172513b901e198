"""What the tests of the taps run in a child process: ``python -m tests.session_scenarios NAME…``.

Each scenario prints what it found as JSON; the tests say what it has to be. Without a name all run.
"""

from __future__ import annotations

from tests import ending_scenarios, output_scenarios, sink_scenarios, speech_scenarios
from tests.session_harness import main

SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        sink_scenarios.greeting_before_start,
        sink_scenarios.interrupted_reply,
        sink_scenarios.cancelled_first_capture,
        sink_scenarios.finish_inside_first_capture,
        sink_scenarios.attached_mid_speech,
        output_scenarios.attach_detach_a_thousand_times,
        output_scenarios.recordings_leave_nothing,
        sink_scenarios.tap_raises,
        sink_scenarios.sink_raises,
        sink_scenarios.wrapped_afterwards,
        sink_scenarios.answers_of_the_next_link,
        output_scenarios.swapped_mid_session,
        output_scenarios.recording_ends_with_the_session,
        output_scenarios.recorded_from_the_middle,
        output_scenarios.usage_errors,
        speech_scenarios.options_are_told,
        sink_scenarios.full_queue,
        output_scenarios.room_builds_the_sink,
        ending_scenarios.closed_while_it_speaks,
        ending_scenarios.closed_in_another_way,
        ending_scenarios.caller_leaves,
        ending_scenarios.nobody_listens_to_a_room_any_more,
        ending_scenarios.handed_over,
        speech_scenarios.callers,
        speech_scenarios.verdict_kinds,
        speech_scenarios.refused_interrupt,
        speech_scenarios.running_speech_is_taken_along,
    )
}

if __name__ == "__main__":
    main(SCENARIOS)
