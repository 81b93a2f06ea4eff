/**
 * `baton artifact get`: downloads an artifact to a file. The bytes are first written to a file with
 * the suffix `.part`. An interrupted download continues from this file when the command runs again.
 */
import { once } from 'node:events'
import { createReadStream, renameSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Command } from 'commander'
import { api } from '../../../protocol/api.ts'
import type { Artifact } from '../../../protocol/artifacts/schema.ts'
import { getArtifact } from '../../artifacts.ts'
import { BatonError } from '../../errors.ts'
import type { Transport } from '../../transport.ts'
import { connected, longClientFor } from '../connection/connection.ts'
import { isSystemError, Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'

/** Adds `baton artifact get` to the command `artifact`. */
export function addGet(parent: Command, shell: Shell): void {
  const command = connected(
    parent
      .command('get')
      .description('Download an artifact, or show its record')
      .argument('<id>', 'id of the artifact')
      .argument(
        '[file]',
        'file to write; - writes to standard output; if absent, the record is shown',
      ),
  ).addHelpText(
    'after',
    '\nExamples:\n  $ baton artifact get art_01JZ3M0Q0R8XG4V2T6Y9ABCDEF\n' +
      '  $ baton artifact get art_01JZ3M0Q0R8XG4V2T6Y9ABCDEF may.pdf\n' +
      'A download that was interrupted continues when the command runs again.\n',
  )
  command.action(
    shell.guarded(async (id: string, file?: string) => {
      const { transport } = longClientFor(command, shell)
      const artifact = (await transport.call(api['artifact.get'], { artifact_id: id })) as Artifact
      if (file === undefined) return shell.print(JSON.stringify(artifact, undefined, 2))
      if (file === '-') return print(transport, id)
      await download(transport, artifact, file, shell)
    }),
  )
}

async function print(transport: Transport, id: string): Promise<void> {
  for await (const chunk of getArtifact(transport, id))
    if (!process.stdout.write(chunk)) await once(process.stdout, 'drain')
}

async function download(
  transport: Transport,
  { id, size_bytes, sha256 = '' }: Artifact,
  file: string,
  shell: Shell,
): Promise<void> {
  const before = statSync(file, { throwIfNoEntry: false })
  if (before?.isDirectory()) throw new Mistake(`${file} is a folder. Name the file to write.`)
  // The download replaces its target, which must not happen to a device or a pipe.
  if (before && !before.isFile())
    throw new Mistake(`${file} is not a file. To write into a pipe, name - as the file.`)
  // The name contains the hash, so a download never continues from the bytes of another artifact.
  const part = `${file}.${sha256.slice(0, 12)}.part`
  const size = sizeOf(part)
  const after = size > size_bytes ? 0 : size
  if (after > 0) shell.note(`Continuing after ${after} of ${size_bytes} bytes.`)
  let at = after
  const out = await open(part, after > 0 ? 'a' : 'w')
  const bar = shell.progress?.('bytes')
  try {
    const known = after > 0 ? bytesOf(part, after) : undefined
    for await (const chunk of getArtifact(transport, id, { after, ...(known && { known }) })) {
      await out.appendFile(chunk)
      at += chunk.length
      bar?.update(size_bytes > 0 ? at / size_bytes : 1, at)
    }
  } catch (error) {
    // The hash is checked after the last byte. No other error is possible then.
    if (at < size_bytes || error instanceof BatonError || isSystemError(error)) throw error
    rmSync(part)
    throw new Mistake(
      `${(error as Error).message} The incomplete file ${part} was deleted. ` +
        'Run the command again to download all bytes.',
    )
  } finally {
    bar?.stop()
    await out.close()
  }
  renameSync(part, file)
  shell.note(`Wrote ${at} bytes to ${file}.`)
}
/** Yields the first bytes of a file. The file is opened when the first chunk is requested. */
async function* bytesOf(file: string, count: number): AsyncGenerator<Uint8Array, void> {
  yield* createReadStream(file, { end: count - 1 })
}
function sizeOf(file: string): number {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (stat && !stat.isFile()) throw new Mistake(`${file} is not a file.`)
  return stat?.size ?? 0
}
