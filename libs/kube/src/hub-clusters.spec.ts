import { hubClusterOf } from './hub-clusters.js';

const metadata = { namespace: 'fleet', name: 'a', uid: '1', labels: { stage: 'prod' } };

it.each([
  ['v1beta2', { initialization: { controlPlaneInitialized: true } }, undefined],
  ['v1beta1', { controlPlaneReady: true, conditions: [{ type: 'Ready', status: 'True' }] }, undefined],
  ['without a status', undefined, 'the control plane is not ready'],
  ['v1beta2 at first', { initialization: {} }, 'the control plane is not ready'],
  ['v1beta1 at first', { controlPlaneReady: false }, 'the control plane is not ready'],
  [
    'v1beta2 whose control plane was lost',
    {
      initialization: { controlPlaneInitialized: true },
      conditions: [{ type: 'ControlPlaneAvailable', status: 'False', reason: 'NotAvailable', message: '1 of 3' }],
    },
    'the control plane is not ready: NotAvailable: 1 of 3',
  ],
  [
    'v1beta1 whose control plane was lost',
    { controlPlaneReady: true, conditions: [{ type: 'ControlPlaneReady', status: 'False', message: '' }] },
    'the control plane is not ready',
  ],
  [
    'v1beta2 of which something else is not available',
    {
      initialization: { controlPlaneInitialized: true },
      conditions: [{ type: 'WorkersAvailable', status: 'False' }],
    },
    undefined,
  ],
])('a Cluster in %s', (_, status, unready) => {
  const raw = { metadata, ...(status === undefined ? {} : { status }) };
  const apiVersion = 'cluster.x-k8s.io/v1beta2';
  expect(hubClusterOf(raw, 'v1beta2')).toEqual({ ...metadata, apiVersion, annotations: {}, unready });
});

it('a Cluster that is being deleted', () => {
  const deletionTimestamp = '2026-01-01T00:00:00Z' as unknown as Date;
  const status = { controlPlaneReady: true };
  expect(hubClusterOf({ metadata: { ...metadata, deletionTimestamp }, status }, 'v1beta1').unready).toBe(
    'the Cluster is being deleted',
  );
});
