"""What ``ocpool doctor`` looks at: small functions that return what they found and change nothing."""
