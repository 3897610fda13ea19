"""What an answer says, read from copies of its bytes while it passes: text, tool calls, usage, errors, instants."""
