/**
 * Records in NATS where the files of an installation are stored. A start with another bucket, or
 * without one, would otherwise find none of the existing files.
 */
import type { Files } from '../../gateway/ports.ts'
import { StartFault } from '../process/fault.ts'
import { OWNER } from '../storage/sweep-artifacts.ts'
import type { Bucket } from './files.ts'

/** Name of the record in the object store of NATS. */
const RECORD = 'files-location'

type Objects = Pick<Files, 'get' | 'put'>

const textOf = async (store: Objects, name: string): Promise<string | undefined> => {
  const bytes = await store.get(name)
  return bytes && Buffer.from(bytes).toString()
}
const locationOf = ({ bucket, prefix, endpoint }: Bucket): string =>
  `s3://${bucket}/${prefix}${endpoint === undefined ? '' : ` at ${endpoint}`}`

/**
 * Compares the configured bucket with the recorded one, and records it. Another bucket is accepted
 * if it contains the object that names this installation, because all objects were then copied.
 * @param blobs the object store of NATS.
 * @param files the configured store of files.
 * @param organization id of the organization of this installation.
 * @throws StartFault when the files of this installation are stored elsewhere.
 */
export async function settleLocation(
  bucket: Bucket | undefined,
  blobs: Objects,
  files: Objects,
  organization: string,
): Promise<void> {
  const known = await textOf(blobs, RECORD)
  const wanted = bucket && locationOf(bucket)
  if (known === wanted) return
  if (wanted === undefined)
    throw new StartFault(
      `Files of this installation are stored in ${known}, but BATON_ARTIFACTS is not set. ` +
        'Set it to this bucket on all nodes.',
    )
  const owner = await textOf(files, OWNER)
  if (known !== undefined && owner !== organization)
    throw new StartFault(
      `Files of this installation are stored in ${known}, but BATON_ARTIFACTS is ${wanted}, ` +
        `which has no object "${OWNER}" of this installation. Correct BATON_ARTIFACTS, or first ` +
        'copy all objects to the new bucket.',
    )
  if (owner === undefined) await files.put(OWNER, Buffer.from(organization))
  await blobs.put(RECORD, Buffer.from(wanted))
}
