"""The bill of materials of an image, as CycloneDX: from the lock alone, the same bytes for the same lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.render.compose import RenderOptions, base_digest, base_image, epoch

if TYPE_CHECKING:
    from cyclonedx.model.component import Component

    from accel_env.model import Lock, LockedFile, Solution

PATH = "sbom.json"
_PYPI = "pypi"


def sbom(solution: Solution, lock: Lock, plan_digest: str, lock_digest: str, options: RenderOptions) -> str:
    """The text of sbom.json: every locked file with its hash, the base image with its digest.

    What the base image holds is not listed: its makers publish that.
    """
    import datetime
    import uuid

    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6

    title = ", ".join(pick.candidate.label for pick in solution.picks) or solution.stack
    image = Component(name=title, version=plan_digest, type=ComponentType.CONTAINER, bom_ref="image")
    files = [_file(file) for file in lock.files]
    parts = [*files, _base(solution, options)]
    bom = Bom(
        components=parts,
        # Both would be new every time otherwise.
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{plan_digest} {lock_digest}"),
        metadata=BomMetaData(component=image, timestamp=datetime.datetime.fromtimestamp(epoch(lock), datetime.timezone.utc)),
    )
    bom.register_dependency(image, parts)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _file(file: LockedFile) -> Component:
    from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    qualifiers = {"file_name": file.filename} | ({} if file.index == _PYPI else {"repository_url": file.url.rpartition("/")[0]})
    hashed = [HashType(alg=HashAlgorithm.SHA_256, content=file.sha256)]
    place = ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(file.url), hashes=hashed)
    url = PackageURL(_PYPI, None, file.name, file.version, qualifiers)
    return Component(
        name=file.name,
        version=file.version,
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=url.to_string(),
        hashes=[] if file.extra_files else hashed,
        external_references=[place] if file.url else [],
    )


def _base(solution: Solution, options: RenderOptions) -> Component:
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    image = options.base or base_image(solution)
    digest = base_digest(solution, image, options)
    head, _, tag = image.ref.rpartition(":") if ":" in image.ref.rpartition("/")[2] else (image.ref, "", "latest")
    url = PackageURL("oci", None, head.rpartition("/")[2], digest or None, {"repository_url": head, "tag": tag})
    return Component(name=image.ref, version=digest or tag, type=ComponentType.CONTAINER, purl=url, bom_ref=url.to_string())
