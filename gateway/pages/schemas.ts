/**
 * Serves the JSON Schemas of blueprint files, which editors load without a credential. They depend
 * only on the version of the program.
 */
import { createHash } from 'node:crypto'
import { editorSchemas, schemaNames } from '../../protocol/blueprints/file-schemas.ts'
import { matchesTag } from '../files/content.ts'
import type { Incoming } from '../http/request.ts'
import type { Answer } from '../http/respond.ts'

interface File {
  readonly text: string
  readonly etag: string
}
function fileOf(schema: unknown): File {
  const text = JSON.stringify(schema)
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` }
}

/** Creates the handlers of the schemas, by path. The schemas are generated when first requested. */
export function openSchemas(): Readonly<Record<string, (incoming: Incoming) => Answer>> {
  let files: ReadonlyMap<string, File> | undefined
  return Object.fromEntries(
    schemaNames.map((name) => [
      `/schemas/${name}`,
      (incoming: Incoming): Answer => {
        files ??= new Map([...editorSchemas()].map(([one, schema]) => [one, fileOf(schema)]))
        const file = files.get(name)
        if (!file) throw new Error(`There is no schema ${name}.`)
        const headers = { ETag: file.etag, 'Cache-Control': 'public, max-age=3600' }
        return matchesTag(incoming.further('if-none-match'), file.etag)
          ? { status: 304, headers }
          : { status: 200, text: file.text, type: 'application/schema+json', headers }
      },
    ]),
  )
}
