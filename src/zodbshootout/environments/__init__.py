"""Other Pythons in which contenders are opened: what they are, and how they come to be there."""
