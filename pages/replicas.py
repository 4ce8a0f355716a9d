"""`/replicas`: which one is sick?"""

from obs.ui import replicas, screen

replicas.draw(screen.current())
