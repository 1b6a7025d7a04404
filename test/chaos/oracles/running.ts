import type { Oracle } from './oracle.js';

/** I4, for units: a unit that must restart after changes runs with the current files. */
export const running: Oracle = {
  name: 'I4 running',
  judge: ({ nodes }) =>
    nodes.flatMap(({ node, files, restarts, runs }) => {
      const lies = Object.entries(files)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([, content]) => content)
        .join('');
      return restarts && (runs ?? '') !== lies
        ? [`${node} runs with ${JSON.stringify(runs)}, and ${JSON.stringify(lies)} lies there`]
        : [];
    }),
};
