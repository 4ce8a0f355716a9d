"""`/kv`: is KV space short, and for whom?"""

from obs.ui import kv, screen

kv.draw(screen.current())
