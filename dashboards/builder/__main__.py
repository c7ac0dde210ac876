"""Write the files of all dashboards: `make dashboards`."""

from dashboards.builder.collection import FOLDER, texts

for name, text in texts().items():
    (FOLDER / name).write_text(text)
