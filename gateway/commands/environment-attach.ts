/** Attaching the workspace of a connected worker as an environment. */
import { refuse } from '../../protocol/errors.ts'
import type { Prepare } from '../prepare.ts'

/** Refuses every attachment, because this release cannot find the session of the worker yet. */
export const prepareAttach: Prepare = () =>
  refuse('service_unavailable', undefined, 'Workers cannot attach environments yet.')
