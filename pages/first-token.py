"""`/first-token`: which stage is slow?"""

from obs.ui import first_token, screen

first_token.draw(screen.current())
