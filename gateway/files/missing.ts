/** Reports files that have a record, but no bytes. */
import type { World } from '../ports.ts'

/** Logs that the store does not contain the bytes of a file, and what an operator can do. */
export const reportMissing = ({ log }: Pick<World, 'log'>, artifact_id: string): void =>
  log.warn(
    {
      event: 'file_missing',
      artifact_id,
      reason:
        'The store of files has a record, but no bytes. If BATON_ARTIFACTS was changed or removed, ' +
        'set its previous value on all nodes, or copy all objects to the new bucket; otherwise ' +
        'restore the object from a version of the bucket or from a backup.',
    },
    'file has no bytes',
  )
