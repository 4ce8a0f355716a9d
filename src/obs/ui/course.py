"""The lines of a piece of evidence, for the pages."""

from obs.course import Course as Course
from obs.course import Courses as Courses
from obs.course import at_gateway as at_gateway
