import { createHash } from 'node:crypto';
import type { Digest } from '#libs/kernel';

export const sha256: Digest = (text) => createHash('sha256').update(text).digest('hex');
