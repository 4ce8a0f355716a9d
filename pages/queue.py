"""`/queue`: is more work admitted than we finish?"""

from obs.ui import queue, screen

queue.draw(screen.current())
