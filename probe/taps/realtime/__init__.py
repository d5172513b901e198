"""The taps on realtime models: responses, their messages, cancels, and both sides' conversations.

A provider commits a message when it creates it; the agent plays it later, or never. So everything
is taken from what passes anyway: the events of the model's session, the calls made on it, and the
streams of a response as the agent reads them. Nothing is read that the agent has not read. What
lies unread is counted where the stream lets its length be seen.
"""
