import type { ContentFetches } from '../downloads.js';

/** For targets whose kinds have no content in the object store. */
export const NO_CONTENTS: ContentFetches = {
  fetch: () => Promise.resolve(undefined),
  learnSizes: () => Promise.resolve(),
  fetchAll: () => Promise.resolve({ isOver: true }),
};
