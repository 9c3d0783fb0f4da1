"""The lessons in the browser: a guess, a move of the playground's controls, the error of the guess, and a conclusion."""
