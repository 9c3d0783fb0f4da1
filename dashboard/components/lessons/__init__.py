"""The lessons in the browser: a guess, a move of the playground's controls, how far off the guess was, a sentence to defend."""
