/** Attaching the workspace of a connected worker as an environment. */
import { refuse } from '../../protocol/errors.ts'
import type { Prepare } from '../prepare.ts'

/** Refuses every attachment, because this release does not look up the worker of the caller yet. */
export const prepareAttach: Prepare = () =>
  refuse('not_found', { resource: 'worker' }, 'The caller has no connected worker to attach.')
