"""What a chat model reads, within its window, and when its stream ends."""
