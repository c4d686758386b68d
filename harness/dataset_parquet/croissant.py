"""croissant.json: the data set as Croissant 1.1 describes one (MLCommons), with the responsible-AI vocabulary 1.0."""

import hashlib
import json

import pyarrow as pa

from . import columns, words

CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}

_KINDS = {pa.string(): "sc:Text", pa.int64(): "cr:Int64", pa.float64(): "cr:Float64", pa.bool_(): "sc:Boolean"}


def _sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _distribution(made, folder):
    files = []
    for config, splits in made.items():
        for _, paths in splits.values():
            for path in paths:
                name = str(path.relative_to(folder))
                files.append({"@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": name,
                              "contentSize": f"{path.stat().st_size} B", "encodingFormat": "application/x-parquet",
                              "sha256": _sha256(path)})
    return files


def _field(record_set, source, name, kind, description, place):
    """A list becomes an array, a structure a field with fields."""
    field = {"@type": "cr:Field", "@id": f"{record_set}/{name}", "name": name}
    if description:
        field["description"] = description
    if pa.types.is_list(kind):
        field["isArray"], field["arrayShape"] = True, "-1"
        kind = kind.value_type
    if pa.types.is_struct(kind):
        field["subField"] = [
            _field(f"{record_set}/{name}", source, one.name, one.type, "", [*place, name]) for one in kind]
    else:
        field["dataType"] = _KINDS[kind]
    path = [*place, name]
    field["source"] = {"fileObject": {"@id": source}, "extract": {"column": path[0]}}
    if len(path) > 1:
        field["source"]["transform"] = {"jsonPath": "$." + ".".join(path[1:])}
    return field


def _record_sets(made, folder):
    """One for each file: a record set reads one table."""
    sets = []
    for config, splits in made.items():
        what, listed = columns.CONFIGS[config]
        for split, (rows, paths) in splits.items():
            for path in paths:
                shard = "" if len(paths) == 1 else "-" + path.name.split("-")[1]
                name = f"{config}-{split}{shard}"
                sets.append({
                    "@type": "cr:RecordSet", "@id": name, "name": name,
                    "description": f"{what} The {split} split: {rows} rows.",
                    "key": {"@id": f"{name}/id"},
                    "field": [_field(name, str(path.relative_to(folder)), column, kind, text, [])
                              for column, kind, text in listed]})
    return sets


def text(about, made, folder):
    distribution = _distribution(made, folder)
    digest = hashlib.sha256("".join(one["sha256"] for one in distribution).encode()).hexdigest()
    described = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": words.NAME,
        "description": words.DESCRIPTION,
        "license": about["license_url"],
        "version": f"1.0.0+{digest[:12]}",
        "citeAs": f"Rekernel data set {digest[:12]}, judge {about['judge'][:12]}",
        "creator": {"@type": "sc:Organization", "name": "The authors of Rekernel"},
        "keywords": ["CUDA", "GPU kernels", "code generation", "preferences", "search"],
        "inLanguage": ["en"],
        "isLiveDataset": False,
        "rai:dataCollection": words.COLLECTION,
        "rai:dataCollectionType": ["Experiments", "Software Collection"],
        "rai:dataCollectionRawData": "The project's trajectories, results and fixtures, in its repository.",
        "rai:dataCollectionMissingData": words.LIMITS[0],
        "rai:dataPreprocessingProtocol": [
            "Prompts are made again by exact replay. Near duplicates are marked, none is taken out. Texts are not "
            "changed."],
        "rai:dataAnnotationProtocol": words.ANNOTATION,
        "rai:machineAnnotationTools": [f"Rekernel's judge {about['judge']}"],
        "rai:dataUseCases": [words.USE_CASES],
        "rai:dataBiases": words.BIASES,
        "rai:dataLimitations": words.LIMITS,
        "rai:dataSocialImpact": words.SOCIAL_IMPACT,
        "rai:personalSensitiveInformation": [words.PERSONAL],
        "rai:dataReleaseMaintenancePlan": words.MAINTENANCE,
        **({"datePublished": newest} if (newest := about["made_of"]["newest"]) else {}),
        "distribution": distribution,
        "recordSet": _record_sets(made, folder),
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"
