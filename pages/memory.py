"""`/memory`: what fills the GPU, and what would still fit?"""

from obs.ui import memory, screen

memory.draw(screen.current())
