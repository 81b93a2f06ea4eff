/**
 * Reads uploaded files as blueprints, with the same reader as the command line. A document may
 * refer to another uploaded file.
 */
import { mergeDocuments, requestOf } from '../../../client/cli/blueprints/documents.ts'
import { type Fault, faultText, placeText } from '../../../client/cli/blueprints/located.ts'
import { readDocuments, sourceOf } from '../../../client/cli/blueprints/yaml.ts'
import { isolate } from '../../../client/isolate.ts'
import type { ApplyRequest } from '../../../protocol/blueprints/schema.ts'

/** An uploaded file. `path` is relative, with slashes. */
export interface UploadedFile {
  readonly path: string
  readonly text: string
}
/** A blueprint from the files. */
interface ReadBlueprint {
  readonly request: ApplyRequest
  /** Returns where the files define a field of the request, such as `desk.yaml:3:5`. */
  readonly placeOf: (path: string) => string | undefined
}
/** The blueprints in the files, and the faults of the files as messages. */
export interface ReadFiles {
  readonly blueprints: readonly ReadBlueprint[]
  readonly faults: readonly string[]
}

const isDocument = ({ path }: UploadedFile): boolean => /\.(ya?ml|json)$/i.test(path)
/** Returns the folder of a path, preceded by a slash; '' for a file without a folder. */
const folderOf = (path: string): string => {
  const end = path.lastIndexOf('/')
  return end < 0 ? '' : `/${path.slice(0, end)}`
}
/**
 * Resolves a reference relative to a folder. Returns undefined if it leads outside the uploaded
 * files.
 */
function resolved(folder: string, name: string): string | undefined {
  const parts = folder.split('/').filter((part) => part !== '')
  for (const part of name.split('/')) {
    if (part === '..') {
      if (parts.pop() === undefined) return undefined
    } else if (part !== '.' && part !== '') parts.push(part)
  }
  return parts.join('/')
}

/** Reads variables from lines such as `NAME=value`. Other lines are ignored. */
export const variablesOf = (lines: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    lines.split('\n').flatMap((line) => {
      const found = /^\s*([A-Za-z_]\w*)=(.*)$/.exec(line)
      return found ? [[found[1], found[2]?.trim()]] : []
    }),
  )

/** Reads the documents among the files. Other files are read only if a document refers to them. */
export function readFiles(
  files: readonly UploadedFile[],
  env: Readonly<Record<string, string>>,
): ReadFiles {
  const texts = new Map(files.map(({ path, text }) => [path, text]))
  const faults: Fault[] = []
  const documents = files
    .filter(isDocument)
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .flatMap(({ path, text }) => {
      const folder = folderOf(path)
      const read = readDocuments(text, {
        source: sourceOf(isolate(path), text),
        env,
        file: (name) => {
          const target = resolved(folder, name)
          const found = target === undefined ? undefined : texts.get(target)
          return found === undefined
            ? { fault: `the file ${name} is not among the chosen files` }
            : { text: found.replace(/\n$/, '') }
        },
      })
      faults.push(...read.faults)
      return read.documents.map((located) => ({ located, file: path, folder, root: '' }))
    })
  const blueprints = mergeDocuments(documents, {}, faults).map((blueprint) => {
    const { request, placeOf } = requestOf(blueprint)
    return {
      request,
      placeOf: (path: string) => {
        const place = placeOf(path)
        return place && placeText(place)
      },
    }
  })
  return { blueprints, faults: [...new Set(faults.map(faultText))] }
}
