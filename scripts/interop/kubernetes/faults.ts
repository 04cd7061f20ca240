/** The rules for our manifests, beyond being valid. */

interface Container {
  readonly name: string;
  readonly image: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly resources?: { readonly requests?: object; readonly limits?: { readonly memory?: string } };
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly livenessProbe?: { readonly httpGet: { readonly path: string } };
  readonly readinessProbe?: { readonly httpGet: { readonly path: string } };
}

interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly automountServiceAccountToken?: boolean;
  readonly enableServiceLinks?: boolean;
  readonly terminationGracePeriodSeconds?: number;
}

export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: { readonly template?: { readonly spec: PodSpec } };
}

/** A stop takes at most 25 s, after the pause of preStop. */
const graceSecondsMin = 31;

/** One sentence per fault. */
export function findFaults(manifests: readonly Manifest[]): string[] {
  const named = (kind: string) => manifests.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name);
  const budgets = named("PodDisruptionBudget");
  return manifests.flatMap(({ kind, metadata: { name, annotations }, spec }) => {
    const pod = spec?.template?.spec;
    const faults = [
      ...(kind === "Secret" ? ["a secret is in the chart"] : []),
      ...(pod ? podFaults(pod) : []),
      ...(kind === "Deployment" && pod ? serverFaults(pod) : []),
      ...(kind === "Deployment" && !budgets.includes(name) ? ["has no PodDisruptionBudget"] : []),
      ...(kind === "Job" && annotations?.["helm.sh/hook"] !== "pre-install,pre-upgrade"
        ? ["does not run before the roll-out"]
        : []),
    ];
    return faults.map((fault) => `${kind} ${name}: ${fault}`);
  });
}

function podFaults(pod: PodSpec): string[] {
  const { runAsNonRoot, seccompProfile } = pod.securityContext ?? {};
  const containers = [...(pod.initContainers ?? []), ...pod.containers];
  return [
    ...(runAsNonRoot === true ? [] : ["may run as root"]),
    ...(JSON.stringify(seccompProfile) === '{"type":"RuntimeDefault"}' ? [] : ["has no seccomp profile"]),
    ...(pod.automountServiceAccountToken === false ? [] : ["has a token for the API server"]),
    ...(pod.enableServiceLinks === false ? [] : ["gets variables of services, which look like settings"]),
    ...containers.flatMap(containerFaults),
  ];
}

function containerFaults({ name, image, env = [], resources, securityContext = {} }: Container): string[] {
  const { readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities } = securityContext;
  const isClosed = readOnlyRootFilesystem === true && allowPrivilegeEscalation === false;
  const secrets = env.filter((each) => /(SECRET|KEYS?|DATABASE_URL|BUS_URL|REDIS_URL)$/.test(each.name));
  return [
    ...(isClosed && JSON.stringify(capabilities) === '{"drop":["ALL"]}'
      ? []
      : [`${name} has more rights than it needs`]),
    ...(resources?.requests && resources.limits?.memory ? [] : [`${name} has no resources`]),
    ...(/:\d+(\.\d+)+$/.test(image) ? [] : [`${image} is not pinned`]),
    ...secrets.map((each) => `${name} has ${each.name} in its environment`),
  ];
}

function serverFaults({ containers, terminationGracePeriodSeconds = 30 }: PodSpec): string[] {
  const probes = containers.every(
    ({ livenessProbe, readinessProbe }) =>
      livenessProbe?.httpGet.path === "/livez" && readinessProbe?.httpGet.path === "/readyz",
  );
  return [
    ...(probes ? [] : ["has no probes"]),
    ...(terminationGracePeriodSeconds >= graceSecondsMin ? [] : ["is killed while it drains"]),
  ];
}
