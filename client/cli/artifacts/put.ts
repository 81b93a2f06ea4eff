/** `baton artifact put`: uploads a file as an artifact. */
import { createReadStream, statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import type { Command } from 'commander'
import mime from 'mime'
import { isJsonObject } from '../../../protocol/rules/json-object.ts'
import { putArtifact, type Source } from '../../artifacts.ts'
import { connected, longClientFor, requireService } from '../connection/connection.ts'
import { standardInput } from '../files/standard-input.ts'
import { Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'

interface Flags {
  readonly name?: string
  readonly mime?: string
  readonly metadata?: string
  readonly convert?: true
}

/** Adds `baton artifact put` to the command `artifact`. */
export function addPut(parent: Command, shell: Shell): void {
  const command = connected(
    parent
      .command('put')
      .description('Upload a file as an artifact, and print its id')
      .argument('<file>', 'file to upload; - reads standard input'),
  )
    .option('--name <name>', 'name of the artifact; by default the name of the file')
    .option('--mime <type>', 'media type; by default from the name of the file')
    .option('--metadata <json>', 'JSON object to store with the artifact')
    .option('--convert', 'extract the text of a DOCX, XLSX or PPTX file as Markdown')
    .addHelpText(
      'after',
      '\nExamples:\n  $ baton artifact put report.pdf --name reports/may.pdf\n' +
        '  $ tar c logs | baton artifact put - --name logs.tar\n',
    )
  command.action(
    shell.guarded(async (file: string) => {
      const { name = nameOf(file), mime: type, metadata, convert } = command.opts<Flags>()
      const source = sourceOf(file)
      const baton = longClientFor(command, shell)
      const { transport } = baton
      // Then an interruption of the upload is not taken for a wrong address. Standard input cannot
      // be uploaded again.
      if (source.size !== undefined) await requireService(baton)
      const bar = shell.progress?.('bytes')
      try {
        const artifact = await putArtifact(transport, source, {
          name,
          mime: type ?? mime.getType(extname(name)) ?? 'application/octet-stream',
          ...(metadata !== undefined && { metadata: objectOf(metadata) }),
          ...(convert && { convert }),
          advanced: (bytes) => bar?.update(source.size ? bytes / source.size : 0, bytes),
        })
        bar?.stop()
        shell.print(artifact.id)
      } finally {
        bar?.stop()
      }
    }),
  )
}

function nameOf(file: string): string {
  if (file === '-') throw new Mistake('Standard input has no name: pass --name.')
  return basename(file)
}
function sourceOf(file: string): Source {
  if (file === '-') return { open: once(standardInput()) }
  try {
    const stat = statSync(file)
    if (!stat.isFile()) throw new Mistake(`${file} is not a file.`)
    return { open: () => createReadStream(file), size: stat.size }
  } catch (error) {
    if (error instanceof Mistake) throw error
    throw new Mistake(`${file} cannot be read: ${(error as Error).message}`)
  }
}
/**
 * Returns a function that opens bytes that can be read only once. A second call, which a repeated
 * upload would need, throws a Mistake.
 */
function once(bytes: AsyncIterable<Uint8Array>): () => AsyncIterable<Uint8Array> {
  let opened = false
  return () => {
    if (opened) throw new Mistake('The upload failed, and standard input cannot be read again.')
    opened = true
    return bytes
  }
}
function objectOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (isJsonObject(value)) return value
  } catch {}
  throw new Mistake('--metadata must be a JSON object, such as \'{"month":"May"}\'.')
}
