/** The chart as Helm renders it, checked by kubeconform against the schemas of the newest Kubernetes, and by our own rules. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { check } from "../test/command.ts";
import { failed, passed, type Result, sum } from "../test/result.ts";
import { findFaults, type Manifest } from "./kubernetes/faults.ts";
import { writeCrdSchema, writeSchemas } from "./kubernetes/schemas.ts";
import { cacheFolder, findProgram, outputOf, report } from "./peer.ts";

const chart = "deploy/kubernetes/todoke";

/** Each is rendered and checked: the defaults, everything on, and as little as possible. */
const variants: Readonly<Record<string, readonly string[]>> = {
  defaults: [],
  everything: ["--set", "ingress.enabled=true", "--api-versions", "monitoring.coreos.com/v1/PodMonitor"],
  small: [
    ...[
      "networkPolicy.enabled",
      "migrations.grantRights.enabled",
      "defaults.autoscaling.enabled",
      "services.orders.enabled",
    ],
  ].flatMap((value) => ["--set", `${value}=false`]),
};

export async function kubernetes(signal: AbortSignal): Promise<Result> {
  const go = findProgram("go", "Install Go, which builds Helm and kubeconform and downloads the schemas.");
  const folder = cacheFolder("kubernetes");
  report("building Helm and kubeconform with Go (some minutes at first)");
  for (const program of ["helm.sh/helm/v3/cmd/helm@latest", "github.com/yannh/kubeconform/cmd/kubeconform@latest"])
    await outputOf([go, "install", program], { signal, env: { GOBIN: folder } });
  const download = async (module: string): Promise<{ Dir: string; Version: string }> =>
    JSON.parse(await outputOf([go, "mod", "download", "-json", `${module}@latest`], { signal, cwd: folder }));
  const release = await download("k8s.io/kubernetes");
  const operator = await download("github.com/prometheus-operator/prometheus-operator");
  writeSchemas(join(release.Dir, "api/openapi-spec/swagger.json"), folder);
  const crds = join(operator.Dir, "example/prometheus-operator-crd");
  writeCrdSchema(join(crds, "monitoring.coreos.com_podmonitors.yaml"), folder);
  report(`schemas of Kubernetes ${release.Version} and of the Prometheus Operator ${operator.Version}`);

  const helm = join(folder, "helm");
  report(`Helm ${await outputOf([helm, "version", "--template", "{{ .Version }}"], { signal })}`);
  const version = ["--kube-version", release.Version];
  const results = [await check([helm, "lint", "--strict", chart, ...version], signal)];
  for (const [name, args] of Object.entries(variants)) {
    report(name);
    const file = join(folder, `${name}.yaml`);
    writeFileSync(file, await outputOf([helm, "template", "todoke", chart, ...version, ...args], { signal }));
    const schemas = `${folder}/{{ .ResourceKind }}{{ .KindSuffix }}.json`;
    results.push(
      await check([join(folder, "kubeconform"), "-strict", "-summary", "-schema-location", schemas, file], signal),
    );
    const manifests: Manifest[] = parseAllDocuments(readFileSync(file, "utf8")).map((each) => each.toJS());
    const faults = findFaults(manifests);
    for (const fault of faults) report(fault);
    results.push(faults.length === 0 ? passed : failed);
  }
  return sum(results);
}
