const HEAD = `# Sluice in the namespace sluice, with the chart's default values; made from deploy/helm/sluice by npm run manifests.
#   kubectl apply --server-side -f deploy/crds -f deploy/manifests/sluice.yaml
# The images are sluice and sluice-applier (Dockerfile, deploy/applier/Dockerfile): name your registry in front of them.
---
# The applier writes folders of its node.
apiVersion: v1
kind: Namespace
metadata:
  name: sluice
  labels:
    pod-security.kubernetes.io/enforce: privileged
`;

/** The plain manifests, rendered by a helm that runs in the project's folder. */
export const manifestsOf = (helm: (args: readonly string[]) => string): string =>
  HEAD +
  helm(['template', 'sluice', 'deploy/helm/sluice', '--namespace', 'sluice', '--set', 'crds.install=false']).replaceAll(
    /^# Source: .*\n/gm,
    '',
  );
