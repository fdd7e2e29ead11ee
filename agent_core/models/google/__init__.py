"""Google's own protocol, through google-genai: the extra `gemini`."""
