/** The actions that publish files of the workspace as artifacts, and download artifacts. */
import { basename, extname, join } from 'node:path'
import mime from 'mime'
import { api } from '../../../protocol/api.ts'
import type { Artifact } from '../../../protocol/artifacts/schema.ts'
import { resultSizes } from '../../../protocol/environments/result-sizes.ts'
import { getArtifact } from '../../artifacts.ts'
import { BatonError } from '../../errors.ts'
import type { Transport } from '../../transport.ts'
import type { Action } from '../../worker/options.ts'
import { ActionFault, optionalText, requiredText, textMap, wholeNumber } from '../fault.ts'
import { descriptor, type Workspace } from '../workspace.ts'
import { openFile, replaceWith } from './files.ts'

/**
 * Runs a function that calls the API.
 * @throws ActionFault instead of a `BatonError`, so that the code of the error becomes the
 * `error_type` of the job.
 */
export async function withRefusals<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof BatonError) throw new ActionFault(error.code, error.message)
    throw error
  }
}

/** Publishes a file under the lease of the job. */
export const publishArtifact =
  (workspace: Workspace): Action =>
  (parameters, { publish }) => {
    const tags = textMap(parameters, 'tags')
    return workspace.use(requiredText(parameters, 'path'), {}, async (entry) => {
      const handle = await openFile(entry)
      try {
        const name = optionalText(parameters, 'name') ?? entry.shown
        return await withRefusals(() =>
          publish(descriptor(handle, entry.path), {
            name,
            mime:
              optionalText(parameters, 'mime') ??
              mime.getType(extname(entry.name)) ??
              'application/octet-stream',
            ...(Object.keys(tags).length > 0 && { metadata: tags }),
          }),
        )
      } finally {
        await handle.close()
      }
    })
  }

/** Downloads an artifact. The file appears after all bytes have arrived. */
export const downloadArtifact =
  (workspace: Workspace, transport: Transport): Action =>
  async (parameters, { signal }) => {
    const artifact_id = requiredText(parameters, 'artifact_id')
    const limit = wholeNumber(parameters, 'max_bytes', {
      standard: resultSizes.download,
      maximum: Number.MAX_SAFE_INTEGER,
    })
    const { name, size_bytes } = (await withRefusals(() =>
      transport.call(api['artifact.get'], { artifact_id }),
    )) as Artifact
    if (size_bytes > limit)
      throw new ActionFault(
        'too_large',
        `${artifact_id} has ${size_bytes} bytes, which is more than max_bytes: ${limit}`,
      )
    const dest = optionalText(parameters, 'dest') ?? basename(name)
    // As with `cp`: if the destination is a folder, the file is written into it under the
    // artifact's name.
    const inFolder = dest.endsWith('/') || (await isFolder(workspace, dest))
    const path = inFolder ? join(dest, basename(name)) : dest
    return workspace.use(path, { create: true }, async (entry) => {
      let bytes_written = 0
      await replaceWith(entry, async (handle) => {
        const chunks = getArtifact(transport, artifact_id, { signal })
        await withRefusals(async () => {
          for await (const chunk of chunks) {
            bytes_written += chunk.length
            if (bytes_written > limit)
              throw new ActionFault('too_large', `more than ${limit} bytes`)
            await handle.writeFile(chunk)
          }
        })
      })
      return { artifact_id, path: entry.shown, bytes_written }
    })
  }
const isFolder = async (workspace: Workspace, path: string): Promise<boolean> =>
  workspace.folder(path).then(
    () => true,
    (error: Error) => {
      if (error.name === 'outside_workspace') throw error
      return false
    },
  )
