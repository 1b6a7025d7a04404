import { Text } from '#libs/manifests';
import { PageRequest, POOL_NAME } from './forms.js';

/** `ops.pool.list`. */
export class ListPoolsRequest extends PageRequest {}

/** `ops.pool.get`. */
export class PoolRequest {
  @Text(POOL_NAME) readonly pool!: string;
}
