"""The Helm chart, rendered by Helm itself and read against the schemas of the Kubernetes API; no cluster runs here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import typer
import yaml

from app.cli import main as entry
from app.settings import Settings, names_of
from scripts.write_env_example import chart_schema
from tests.fakes.qdrant_double import VERSION
from tests.unit.test_deployment import environment_of_the_image

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/documind"
SETTINGS = {name.upper() for field in Settings.model_fields for name in names_of(field)}
OF_CONTAINERS = {"POSTGRES_PASSWORD", "POD_IP", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
"""Variables of our containers that are no settings: parts of a setting, and keys that obstore reads."""
KUBERNETES = ("1.25", "1.37")
"""The oldest that Chart.yaml permits, and the newest whose schemas are known."""
Values = dict[str, Any]

EXTERNAL: Values = {
    "existingSecret": "keys",
    "qdrant": {"url": "http://one:6333,http://two:6333", "copies": 2},
    "seaweedfs": {"url": "s3://bucket/originals"},
}
OWN: Values = {
    "existingSecret": "keys",
    "postgresql": {"own": True},
    "qdrant": {"own": True},
    "seaweedfs": {"own": True},
}
COMBINATIONS: dict[str, Values] = {
    "external engines": EXTERNAL,
    "own engines": OWN,
    "three nodes of Qdrant": {**OWN, "qdrant": {"own": True, "replicas": 3, "copies": 2, "storageClass": "fast"}},
    "one of each": {**OWN, "api": {"replicas": 1}, "workers": [{"name": "all", "lanes": ["interactive", "background", "network"], "replicas": 1}]},
    "no workers": {**EXTERNAL, "workers": []},
    "many, with an Ingress": {
        **EXTERNAL,
        "api": {"replicas": 5},
        "ingress": {"enabled": True, "host": "docs.example", "className": "nginx", "tlsSecret": "tls", "annotations": {"a/b": "c"}},
        "settings": {"OLLAMA_BASE_URL": "http://ollama:11434", "CHUNK_SIZE": 700, "LOG_JSON": False},
        "secretSettings": ["HOSTED_KEY"],
        "trustedHosts": ["docs.internal"],
        "networkPolicy": {"enabled": False},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def chart() -> Iterator[helm_python.Chart]:
    with helm_python.Chart.load(CHART) as loaded:
        yield loaded


def manifests(
    chart: helm_python.Chart, values: Values, **options: Any
) -> list[dict[str, Any]]:  # of Helm
    """Return every object that the chart makes."""
    rendered = chart.render(values, **{"name": "demo", "namespace": "docs", **options})
    return [one for text in rendered.values() for one in yaml.safe_load_all(text) if one]


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def pods(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the pod specifications by the name of what makes them."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in objects
        if "template" in one.get("spec", {})
    }


def ours(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return our containers, by the name of what makes their pod."""
    return {
        name: pod["containers"][0]
        for name, pod in pods(objects).items()
        if pod["containers"][0]["image"].startswith("documind:")
    }


def variables(container: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


@pytest.mark.parametrize("values", COMBINATIONS.values(), ids=COMBINATIONS)
def test_every_object_is_one_that_kubernetes_takes(
    chart: helm_python.Chart, values: Values
) -> None:
    objects = manifests(chart, values)
    for version in KUBERNETES:
        for one in objects:
            kubernetes_validate.validate(one, version, strict=True)
    names = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert len(names) == len(set(names))
    report = helm_python.lint(CHART, values, strict=True)
    assert not report["errors"], report


def test_a_misspelt_key_of_an_object_is_found(chart: helm_python.Chart) -> None:
    deployment = of_kind(manifests(chart, EXTERNAL), "Deployment")["demo-documind-api"]
    deployment["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readynessProbe"):
        kubernetes_validate.validate(deployment, KUBERNETES[-1], strict=True)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"replica": 3}, "replica"),
        ({"api": {"replicaCount": 3}}, "replicaCount"),
        ({"settings": {"CHUNKSIZE": 700}}, "CHUNKSIZE"),
        ({"settings": {"HOSTED_KEY": "k3y"}}, "HOSTED_KEY"),
        ({"settings": {"DATABASE_URL": "postgresql://a:b@c/d"}}, "DATABASE_URL"),
        ({"secretSettings": ["CHUNK_SIZE"]}, "secretSettings"),
        ({"workers": [{"name": "a", "lanes": ["slow"], "replicas": 1}]}, "lanes"),
        ({"workers": [{"name": "a", "lanes": [], "replicas": 1}]}, "lanes"),
        ({"qdrant": {"url": "http://one:6333", "password": "k3y"}}, "password"),
        ({"existingSecret": ""}, "existingSecret: name a Secret"),
        ({"qdrant": {"url": ""}}, "qdrant.url: the address"),
        ({"qdrant": {"own": True, "copies": 2}}, r"qdrant.copies \(2\) must not be more"),
        ({"seaweedfs": {"url": ""}}, "seaweedfs.url: s3://"),
        ({"ingress": {"enabled": True}}, "ingress.host: the name"),
    ],
)
def test_wrong_values_are_refused_by_name(
    chart: helm_python.Chart, wrong: Values, said: str
) -> None:
    with pytest.raises(helm_python.HelmError, match=said):
        manifests(chart, {**EXTERNAL, **wrong})


@pytest.mark.parametrize("values", COMBINATIONS.values(), ids=COMBINATIONS)
def test_every_variable_is_a_setting_and_every_command_exists(
    chart: helm_python.Chart, values: Values
) -> None:
    found = ours(manifests(chart, values))
    assert {"demo-documind-api", "demo-documind-migrate"} <= set(found)
    commands = typer.main.get_command(entry.app).commands  # type: ignore[attr-defined]
    for name, container in found.items():
        given = variables(container)
        assert set(given) <= SETTINGS | OF_CONTAINERS, name
        assert {"DATABASE_URL", "SEARCH_URL", "ORIGINALS_URL"} <= set(given)
        called, *options = container["args"]
        with commands[called].make_context(called, list(options)):  # refuses unknown options
            pass


def test_the_schema_names_the_settings_that_there_are() -> None:
    text = (CHART / "values.schema.json").read_text(encoding="utf-8")
    assert chart_schema(text) == text, "run: python -m scripts.write_env_example"
    plain = json.loads(text)["properties"]["settings"]["propertyNames"]["enum"]
    assert "CHUNK_SIZE" in plain
    assert not [name for name in plain if name.endswith(("_KEY", "DATABASE_URL"))]


@pytest.mark.parametrize("values", COMBINATIONS.values(), ids=COMBINATIONS)
def test_secrets_come_from_a_secret_that_the_chart_does_not_make(
    chart: helm_python.Chart, values: Values
) -> None:
    objects = manifests(chart, values)
    assert not of_kind(objects, "Secret")
    for container in (one for pod in pods(objects).values() for one in pod["containers"]):
        for name, value in variables(container).items():
            if name.endswith(("_KEY", "_PASSWORD", "_KEY_ID")):
                assert value["secretKeyRef"]["name"] == "keys", name
            if name == "DATABASE_URL" and isinstance(value, str):
                assert ":$(POSTGRES_PASSWORD)@" in value


def test_probes_ask_as_a_name_that_the_server_knows(chart: helm_python.Chart) -> None:
    """A probe's Host header is the pod's address otherwise, which is refused with 403."""
    objects = manifests(chart, EXTERNAL)
    container = ours(objects)["demo-documind-api"]
    asked = {
        kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")
    }
    assert {kind: probe["path"] for kind, probe in asked.items()} == {
        "startup": "/health/live",
        "liveness": "/health/live",
        "readiness": "/health/ready",
    }
    assert all(
        probe["httpHeaders"] == [{"name": "Host", "value": "localhost"}] for probe in asked.values()
    )
    trusted = variables(container)["TRUSTED_HOSTS"].split(",")
    service = of_kind(objects, "Service")["demo-documind"]
    assert service["spec"]["ports"][0]["port"] == 8001
    assert {"localhost", "$(POD_IP)", "demo-documind", "demo-documind.docs"} <= set(trusted)
    names = list(variables(container))
    assert names.index("POD_IP") < names.index("TRUSTED_HOSTS")  # else it is not filled in


def test_a_name_of_the_ingress_is_trusted(chart: helm_python.Chart) -> None:
    objects = manifests(chart, COMBINATIONS["many, with an Ingress"])
    given = variables(ours(objects)["demo-documind-api"])
    assert given["TRUSTED_HOSTS"].endswith(",docs.example,docs.internal")
    assert (given["CHUNK_SIZE"], given["LOG_JSON"]) == ("700", "false")
    assert given["HOSTED_KEY"]["secretKeyRef"]["key"] == "HOSTED_KEY"
    (rule,) = of_kind(objects, "Ingress")["demo-documind"]["spec"]["rules"]
    assert rule["host"] == "docs.example"


def test_workers_are_a_deployment_for_each_set_of_lanes(chart: helm_python.Chart) -> None:
    objects = manifests(chart, EXTERNAL)
    workers = {
        name: container["args"] for name, container in ours(objects).items() if "worker" in name
    }
    assert workers == {
        "demo-documind-worker-uploads": ["work", "--lanes", "interactive,network"],
        "demo-documind-worker-background": ["work", "--lanes", "background"],
    }
    assert ours(objects)["demo-documind-api"]["args"] == ["serve", "--no-work"]
    assert ours(manifests(chart, {**EXTERNAL, "workers": []}))["demo-documind-api"]["args"] == [
        "serve"
    ]


def test_the_schema_is_migrated_before_servers_of_a_new_release_start(
    chart: helm_python.Chart,
) -> None:
    def hook(values: Values) -> str:
        job = of_kind(manifests(chart, values), "Job")["demo-documind-migrate"]
        return str(job["metadata"]["annotations"]["helm.sh/hook"])

    assert hook(EXTERNAL) == "pre-install,pre-upgrade"
    assert hook(OWN) == "post-install,pre-upgrade"  # own PostgreSQL is not there before
    job = pods(manifests(chart, EXTERNAL))["demo-documind-migrate"]
    assert "serviceAccountName" not in job  # which is not there before the install either


@pytest.mark.parametrize("values", COMBINATIONS.values(), ids=COMBINATIONS)
def test_no_pod_has_more_power_than_it_needs(chart: helm_python.Chart, values: Values) -> None:
    image = environment_of_the_image()
    objects = manifests(chart, values)
    for name, pod in pods(objects).items():
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["enableServiceLinks"] is False, (
            name
        )  # DOCUMIND_PORT and its like look like settings
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        for container in pod["containers"]:
            power = container["securityContext"]
            assert power["readOnlyRootFilesystem"] is True
            assert power["allowPrivilegeEscalation"] is False
            assert power["capabilities"] == {"drop": ["ALL"]}
            asked = container["resources"]["requests"] if container["resources"] else {"memory": 1}
            assert "memory" in asked
    for name, container in ours(objects).items():
        places = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert places == {image["DATA_DIR"], "/tmp"}, name


def test_images_of_engines_are_those_of_compose_and_pinned(chart: helm_python.Chart) -> None:
    services = yaml.safe_load((ROOT / "deploy/compose/shared.yml").read_text())["services"]
    images = {
        name.removeprefix("demo-documind-"): pod["containers"][0]["image"]
        for name, pod in pods(manifests(chart, OWN)).items()
    }
    for engine in ("postgresql", "qdrant", "seaweedfs"):
        assert images[engine] == services[engine]["image"]


def test_one_pod_of_several_is_away_at_a_time(chart: helm_python.Chart) -> None:
    budgets = of_kind(
        manifests(chart, COMBINATIONS["three nodes of Qdrant"]), "PodDisruptionBudget"
    )
    assert set(budgets) == {
        "demo-documind-api", "demo-documind-worker-uploads", "demo-documind-qdrant",
    }  # fmt: skip
    assert all(one["spec"]["maxUnavailable"] == 1 for one in budgets.values())
    assert not of_kind(manifests(chart, COMBINATIONS["one of each"]), "PodDisruptionBudget")


def test_own_engines_answer_pods_of_the_release_alone(chart: helm_python.Chart) -> None:
    policies = of_kind(manifests(chart, OWN), "NetworkPolicy")
    assert set(policies) == {
        f"demo-documind-{name}" for name in ("postgresql", "qdrant", "seaweedfs")
    }
    for name, policy in policies.items():
        rule, *others = policy["spec"]["ingress"]
        assert rule["from"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/instance"] == "demo"
        assert rule["ports"]
        assert bool(others) == name.endswith("qdrant")
    (scraped,) = policies["demo-documind-qdrant"]["spec"]["ingress"][1:]
    (namespace,) = scraped["from"]
    assert namespace["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "monitoring"
    }
    assert scraped["ports"] == [{"port": 6333}]
    closed = {**OWN, "networkPolicy": {"prometheusNamespace": ""}}
    policy = of_kind(manifests(chart, closed), "NetworkPolicy")["demo-documind-qdrant"]
    assert len(policy["spec"]["ingress"]) == 1
    assert not of_kind(manifests(chart, EXTERNAL), "NetworkPolicy")


def test_one_minor_version_of_qdrant_is_named_everywhere(chart: helm_python.Chart) -> None:
    minor = VERSION.rpartition(".")[0]
    lock = (ROOT / "locks/shared.lock").read_text("utf-8")
    assert f"qdrant-client=={minor}." in lock
    files = [ROOT / "deploy/compose/shared.yml", ROOT / "deploy/compose/qdrant-three-nodes.yml"]
    images = re.findall(
        r"qdrant/qdrant:v(\S+)\.\d+", "".join(one.read_text("utf-8") for one in files)
    )
    made = pods(manifests(chart, OWN))["demo-documind-qdrant"]["containers"][0]["image"]
    assert {*images, made.partition(":v")[2].rpartition(".")[0]} == {minor}


def test_nodes_of_qdrant_are_there_before_servers_and_on_machines_of_their_own(
    chart: helm_python.Chart,
) -> None:
    made = pods(manifests(chart, COMBINATIONS["three nodes of Qdrant"]))
    for name, pod in made.items():
        first = [one["name"] for one in pod.get("initContainers", ())]
        assert first == (["search-nodes"] if "-api" in name or "-worker" in name else []), name
    (waits,) = made["demo-documind-api"]["initContainers"]
    assert waits["args"][1].count("http://") == 3
    compile(waits["args"][0], "search-nodes", "exec")
    (apart,) = made["demo-documind-qdrant"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == "qdrant"
    assert "affinity" not in pods(manifests(chart, OWN))["demo-documind-qdrant"]
    assert "initContainers" not in pods(manifests(chart, EXTERNAL))["demo-documind-api"]


def test_a_worker_that_is_frozen_is_started_again(chart: helm_python.Chart) -> None:
    found = ours(manifests(chart, EXTERNAL))["demo-documind-worker-uploads"]
    compose = yaml.safe_load((ROOT / "deploy/compose/shared.yml").read_text())
    check = compose["services"]["worker-1"]["healthcheck"]["test"][1:]
    assert found["startupProbe"]["exec"]["command"] == check
    assert found["livenessProbe"]["exec"]["command"] == check


def test_alerts_ask_for_metrics_that_there_are() -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"][0][
        "rules"
    ]
    source = (ROOT / "app/api/metrics.py").read_text("utf-8")
    named = {name for rule in rules for name in re.findall(r"documind_(\w+)", rule["expr"])}
    assert {"search_dead_copies", "search_copies"} <= named
    for name in named:
        last = name.removesuffix("_total").removeprefix("search_").removeprefix("engine_")
        assert f'"{last}"' in source, name
    assert all({"alert", "expr", "for", "annotations"} <= set(rule) for rule in rules)


def test_servers_know_every_node_of_an_own_qdrant(chart: helm_python.Chart) -> None:
    objects = manifests(chart, COMBINATIONS["three nodes of Qdrant"])
    given = variables(ours(objects)["demo-documind-api"])
    service = "demo-documind-qdrant"
    assert given["SEARCH_URL"].split(",") == [
        f"http://{service}-{n}.{service}:6333" for n in range(3)
    ]
    assert given["SEARCH_REPLICAS"] == "2"
    nodes = of_kind(objects, "StatefulSet")[service]["spec"]
    assert (nodes["replicas"], nodes["serviceName"]) == (3, service)
    assert nodes["volumeClaimTemplates"][0]["spec"]["storageClassName"] == "fast"


def test_a_release_with_a_long_or_telling_name_keeps_names_short(chart: helm_python.Chart) -> None:
    for name in ("documind", "a-release-whose-name-is-as-long-as-helm-permits-53ch"):
        for one in manifests(chart, COMBINATIONS["three nodes of Qdrant"], name=name):
            assert len(one["metadata"]["name"]) <= 63
    assert "documind-api" in pods(manifests(chart, EXTERNAL, name="documind"))
