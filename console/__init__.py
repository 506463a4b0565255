"""People: the command line and the development stack. Nothing below this layer imports it."""
