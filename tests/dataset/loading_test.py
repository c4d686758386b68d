#!/usr/bin/env python3
"""The project's data set, loaded by other people's packages (loading_requirements.txt), offline. $1: the program;
--made FOLDER: where project_dataset.py made it. With $REKERNEL_LOADERS, by the Python of that name."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import datasets_made

LOADERS = os.environ.get("REKERNEL_LOADERS")
if LOADERS and sys.executable != LOADERS:
    sys.exit(subprocess.run([LOADERS, *sys.argv], check=False).returncode)

MADE = datasets_made.take_option("--made")
PROGRAM = str(Path(sys.argv.pop(1)).resolve())
SCRATCH = tempfile.TemporaryDirectory()
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=SCRATCH.name)
try:
    import atif
    import datasets
    import mlcroissant
except ImportError as error:
    datasets_made.skip(f"{error}; install loading_requirements.txt into a Python and name it in REKERNEL_LOADERS")


class Loading(unittest.TestCase):
    def test_every_config_and_split_is_loaded(self):
        names = datasets.get_dataset_config_names(str(MADE))
        self.assertEqual(names[0], "candidates")
        for name in names:
            loaded = datasets.load_dataset(str(MADE), name)
            self.assertEqual(set(loaded), {path.name.split("-")[0] for path in (MADE / name).glob("*.parquet")})
            for split in loaded.values():
                self.assertGreater(len(split), 0)
                self.assertTrue(split[0]["id"])

    def test_croissant_is_valid_and_its_records_are_read(self):
        croissant = mlcroissant.Dataset(jsonld=str(MADE / "croissant.json"))
        issues = croissant.metadata.ctx.issues
        self.assertEqual((issues.errors, issues.warnings), (set(), set()))
        described = json.loads((MADE / "croissant.json").read_text())
        self.assertIn("http://mlcommons.org/croissant/1.1", described["conformsTo"])
        for name in ("rai:dataCollection", "rai:dataBiases", "rai:dataLimitations", "rai:dataUseCases",
                     "rai:personalSensitiveInformation", "rai:dataSocialImpact"):
            self.assertTrue(described[name])
        for record_set in croissant.metadata.record_sets:
            first = next(iter(croissant.records(record_set.id)))
            self.assertTrue(first[f"{record_set.id}/id"])

    def test_atif_is_valid(self):
        for path in datasets_made.ended_searches():
            printed = datasets_made.rekernel(PROGRAM, "dataset", "atif", path.stem)
            self.assertEqual(printed.returncode, 0, printed.stderr)
            trajectory = atif.Trajectory.model_validate(json.loads(printed.stdout))
            self.assertEqual(trajectory.final_metrics.total_steps, len(trajectory.steps))


if __name__ == "__main__":
    unittest.main()
