"""What a platform's server holds, drawn as its client shows it: for people who judge it by eye."""
