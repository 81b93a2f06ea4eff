/** `baton export` writes a project to files. `baton schemas` writes JSON Schemas for editors. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { type Command, Option } from 'commander'
import { api } from '../../../protocol/api.ts'
import { editorSchemas } from '../../../protocol/blueprints/file-schemas.ts'
import { resourceArrays } from '../../../protocol/blueprints/resources.ts'
import type { Export } from '../../../protocol/blueprints/schema.ts'
import { clientFor, connected } from '../connection/connection.ts'
import { Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'
import { filesOf, singleFile } from './write.ts'

interface Flags {
  readonly dir?: string
  readonly namespace?: string
  readonly blueprintKey?: string
  readonly format: 'yaml' | 'json'
  readonly schemas?: string
}

/** Adds `baton export` and `baton schemas` to a program. */
export function addBlueprintExport(program: Command, shell: Shell): void {
  const command = connected(
    program
      .command('export')
      .description(
        'Write the resources of a project, or of one blueprint, as files for baton apply',
      ),
  )
    .option('--dir <folder>', 'folder of the files; by default one document on standard output')
    .option('--namespace <text>', 'namespace of a blueprint')
    .option('--blueprint-key <text>', 'key of a blueprint')
    .addOption(
      new Option('--format <format>', 'format of the files')
        .choices(['yaml', 'json'])
        .default('yaml'),
    )
    .option(
      '--schemas <address>',
      'address or folder of the JSON Schemas that the files name; by default those of the server',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ baton export --dir desk\n  ' +
        '$ baton export --namespace examples --blueprint-key support-desk\n',
    )
  command.action(
    shell.guarded(async () => {
      const { dir, namespace, blueprintKey, format, schemas } = command.opts<Flags>()
      const { transport } = clientFor(command, shell.env)
      const exported = (await transport.call(api['blueprint.export'], {
        ...(namespace !== undefined && { namespace }),
        ...(blueprintKey !== undefined && { blueprint_key: blueprintKey }),
      })) as Export
      if (Object.values(exported.resources).every((one) => one.length === 0))
        shell.note(emptyNote(namespace, blueprintKey))
      const address = (schemas ?? `${transport.url}/schemas`).replace(/\/+$/, '')
      const writing = { format, schemas: address }
      if (dir === undefined) {
        shell.print(singleFile(exported, writing).replace(/\n$/, ''))
        return
      }
      const files = filesOf(exported, writing)
      write(dir, files)
      shell.note(`Wrote ${files.size} files to ${dir}.`)
      const stale = otherDocuments(dir, files)
      if (stale.length > 0)
        shell.note(
          `These files describe nothing that was exported; baton apply would create their resources:\n` +
            stale.map((name) => `  ${join(dir, name)}`).join('\n'),
        )
    }),
  )
  const written = program
    .command('schemas')
    .description('Write the JSON Schemas of files for baton apply, for editors')
    .requiredOption('--dir <folder>', 'folder of the schemas')
    .addHelpText('after', '\nExample:\n  $ baton schemas --dir .schemas\n')
  written.action(
    shell.guarded(async () => {
      const { dir } = written.opts<{ readonly dir: string }>()
      const schemas = [...editorSchemas()].map(
        ([name, schema]) => [name, `${JSON.stringify(schema, null, 2)}\n`] as const,
      )
      write(dir, new Map(schemas))
      shell.note(`Wrote ${schemas.length} schemas to ${dir}.`)
    }),
  )
}

/** Returns the remark on an export without resources: usually a misspelt name or namespace. */
const emptyNote = (namespace: string | undefined, key: string | undefined): string =>
  namespace === undefined && key === undefined
    ? 'The project has no resources that can be exported.'
    : `No resource belongs to the blueprint ${key === undefined ? 'without a key' : JSON.stringify(key)} ` +
      `${namespace === undefined ? 'without a namespace' : `in the namespace ${JSON.stringify(namespace)}`}. ` +
      'This command shows all of them: baton blueprint bindings'

function write(folder: string, files: ReadonlyMap<string, string>): void {
  try {
    for (const [name, text] of files) {
      const path = join(folder, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
    }
  } catch (error) {
    throw new Mistake(`The files cannot be written: ${(error as Error).message}`)
  }
}
/** Returns the paths of documents in an export's folders that the export did not write. */
const otherDocuments = (folder: string, files: ReadonlyMap<string, string>): string[] =>
  Object.keys(resourceArrays).flatMap((array) => {
    if (!existsSync(join(folder, array))) return []
    return readdirSync(join(folder, array))
      .filter((name) => ['.yaml', '.yml', '.json'].includes(extname(name)))
      .map((name) => `${array}/${name}`)
      .filter((name) => !files.has(name))
      .sort()
  })
