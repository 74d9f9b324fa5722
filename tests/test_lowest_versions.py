"""The lowest versions that the project allows, as constraints for pip."""

import re
import tomllib

from folders import ROOT
from lowest_versions import lowest_versions


def test_every_dependency_that_is_not_bound_to_a_release_has_a_lowest_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    varying = [one for one in listed if "==" not in one.partition(";")[0] and not one.startswith(project["name"])]
    assert [line.partition("==")[0] for line in lowest_versions(project)] == [
        re.split(r"[>\[; ]", requirement)[0] for requirement in varying
    ]


def test_a_constraint_holds_where_the_dependency_does() -> None:
    project = {
        "dependencies": ["a>=1.2", "b==3.*", 'c[fast]>=4; sys_platform == "linux"'],
        "optional-dependencies": {"more": ["d>=5.0.1"]},
    }
    assert list(lowest_versions(project)) == ["a==1.2", 'c==4; sys_platform == "linux"', "d==5.0.1"]
