/**
 * Commands that are derived from the API table: `baton <group> <name>` and `baton call
 * <operation>`. Every new row gets a command without further code.
 */
import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError, type Option } from 'commander'
import { api } from '../../protocol/api.ts'
import { isConditional, isTagged } from '../../protocol/conditional.ts'
import { type Row, routeOf } from '../../protocol/contract.ts'
import { OptionWithSuggestions } from './completion.ts'
import { clientFor, connected, connectionFlags } from './connection/connection.ts'
import {
  type Field,
  fieldsOf,
  inputOf,
  kebab,
  parseJson,
  placeholder,
  readValue,
  slotsOf,
} from './fields.ts'
import { Mistake } from './mistake.ts'
import { resolveNames } from './names.ts'
import { type Format, formatted, isFieldFormat, printReply, usedFormat } from './output.ts'
import type { Shell } from './shell.ts'
import { unknownName } from './usage.ts'

const read = (file: string, encoding: 'utf8' | 'base64' = 'utf8'): string => {
  try {
    return readFileSync(file === '-' ? 0 : file, encoding)
  } catch (error) {
    throw new Mistake(`${file} cannot be read: ${(error as Error).message}`)
  }
}

/** Rows that can be called: commands, queries, and streams that can be read as a page. */
export const callable: readonly (readonly [name: string, row: Row])[] = (
  Object.entries(api) as [string, Row][]
).filter(
  ([, { verb, shape }]) => verb === 'command' || verb === 'query' || shape.stream === 'accept',
)
const isOld = ({ shape }: Row): boolean => shape.as !== undefined
/** Returns the callable rows without those that are variants of others. */
const shown = (): typeof callable => callable.filter(([, row]) => !isOld(row))

/**
 * Adds `baton <group> <name>` for every callable row. If a command with the group's name exists,
 * the rows become its subcommands.
 */
export function addGroups(program: Command, shell: Shell): void {
  for (const [name, row] of callable) {
    const [group = '', operation = ''] = name.split('.')
    const parent =
      program.commands.find((command) => command.name() === group) ??
      program.command(group).description(`${row.shape.tag}: ${operationsOf(group)}`)
    // A command with the same name, such as `artifact get`, replaces the command of the row.
    if (!parent.commands.some((command) => command.name() === kebab(operation)))
      addRow(parent, name, kebab(operation), row, shell)
  }
}
const operationsOf = (group: string): string =>
  callable
    .filter(([name, row]) => name.startsWith(`${group}.`) && !isOld(row))
    .map(([name]) => kebab(name.slice(group.length + 1)))
    .join(', ')

/** Adds the command of a row as the subcommand `operation`. */
export function addRow(
  parent: Command,
  name: string,
  operation: string,
  row: Row,
  shell: Shell,
): void {
  const slots = slotsOf(name, row)
  const fields = fieldsOf(row).filter((field) => !slots.includes(field.name))
  const command = formatted(
    connected(parent.command(operation, { hidden: isOld(row) }).description(row.shape.summary)),
  )
  for (const slot of slots) command.argument(`<${kebab(slot)}>`)
  for (const field of fields) command.addOption(optionOf(field))
  addConditions(command, row)
  command.addHelpText(
    'after',
    `\n${row.verb === 'command' ? 'Changes data' : 'Reads data'}: ${row.route}\nExample:\n` +
      `  $ baton ${exampleOf(name, row)}\n`,
  )
  command.action(
    shell.guarded(async (...given: unknown[]) => {
      const texts = given.slice(0, slots.length) as string[]
      const options = command.opts<Record<string, unknown>>()
      const input: Record<string, unknown> = Object.fromEntries(
        slots.map((slot, index) => [slot, texts[index]]),
      )
      await call(command, name, row, { ...input, ...givenFields(fields, options) }, shell)
    }),
  )
}

/** Adds the options for entity tags to a command, if its row has entity tags. */
function addConditions(command: Command, row: Row): void {
  if (isConditional(row))
    command.option('--if-match <tag>', 'change the record only if it still has this entity tag')
  if (isTagged(row))
    command.option('--etag', 'print the entity tag of the record instead of the record')
}

/** Represents null, which commander would interpret as a flag without a value. */
const NULL = Symbol('null')

/**
 * Returns the attribute name under which commander stores the value of a field's flag. The prefix
 * avoids conflicts with the flags that every command has.
 */
const keyOf = ({ name }: Field): string => `field_${name}`
/** Returns the values of the options that were given on the command line, by field name. */
export const givenFields = (
  fields: readonly Field[],
  options: Readonly<Record<string, unknown>>,
): Record<string, unknown> =>
  Object.fromEntries(
    fields.flatMap((field) => {
      const value = options[keyOf(field)]
      return value === undefined ? [] : [[field.name, value === NULL ? null : value]]
    }),
  )
/** Returns the option of a field; `givenFields` reads its value. */
export function optionOf(field: Field): Option {
  const reserved = [...connectionFlags, 'format', 'help'].includes(field.name)
  const help = [
    field.form === 'list' && field.choices ? field.choices.join(', ') : '',
    field.help,
    field.required ? 'required' : '',
  ]
    .filter((part) => part !== '')
    .join('; ')
  const option = new OptionWithSuggestions(
    `--${reserved ? 'field-' : ''}${kebab(field.name)} ${placeholder(field)}`,
    help,
    field.choices ?? [],
  )
  option.attributeName = () => keyOf(field)
  if (field.required) option.makeOptionMandatory()
  if (field.form === 'boolean') option.preset('true')
  return option.argParser((text: string, before: unknown) => {
    const value = given(field, text)
    if ('fault' in value) throw new InvalidArgumentError(`${value.fault}.`)
    return field.form === 'list' && Array.isArray(before)
      ? [...(before as unknown[]), ...(value.value as unknown[])]
      : (value.value ?? NULL)
  })
}

/**
 * Reads the value of an option. An unreadable file is reported as an invalid value of the option.
 */
function given(field: Field, text: string): ReturnType<typeof readValue> {
  try {
    return readValue(field, text, read)
  } catch (error) {
    if (error instanceof Mistake) return { fault: error.message }
    throw error
  }
}

/** Returns an example of a row's command, without the name of the program. */
export function exampleOf(name: string, row: Row): string {
  const [group = '', operation = ''] = name.split('.')
  const { cliExample } = row.shape
  if (cliExample !== undefined) return `${group} ${kebab(operation)} ${cliExample}`
  const slots = slotsOf(name, row).map((slot) => `<${kebab(slot)}>`)
  const flags = fieldsOf(row)
    .filter(({ required }) => required)
    .map((field) => `--${kebab(field.name)} ${exampleValueOf(field)}`)
  return [group, kebab(operation), ...slots, ...flags].join(' ')
}
function exampleValueOf({ name, form, choices }: Field): string {
  if (form === 'json') return `@${kebab(name)}.json`
  if (form === 'file') return 'picture.png'
  if (form === 'list') return 'one,two'
  return choices?.[0] ?? (form === 'text' ? `"my ${name}"` : '1')
}

/** Adds `baton call` to a program, with one hidden subcommand for each callable row. */
export function addCall(program: Command, shell: Shell): void {
  const parent = program
    .command('call')
    .description('Call an API operation by its name; without a name, list all operations')
    .addHelpText(
      'after',
      '\nExamples:\n  $ baton call\n  $ baton call run.start --help\n' +
        '  $ baton call run.start --set definition_id=my-workflow --set input=\'{"order":17}\'\n' +
        '  $ baton call workflow.create --body @workflow.json\n',
    )
    // The parent receives every name that is no subcommand, with the options that follow it.
    .allowExcessArguments()
    .allowUnknownOption()
    .action((_: unknown, command: Command) => {
      const [name] = command.args
      if (name === undefined) return shell.print(catalog())
      if (name.startsWith('-')) command.error(`error: unknown option '${name}'`)
      command.error(
        unknownName(
          'operation',
          name,
          shown().map(([known]) => known),
        ),
      )
    })
  for (const [name, row] of callable) {
    const command = formatted(
      connected(parent.command(name, { hidden: true }).description(row.shape.summary)),
    )
      .option(
        '--set <field=value...>',
        'value of a field; JSON fields accept JSON or @file',
        (text: string, before: string[] | undefined) => [...(before ?? []), text],
      )
      .option('--body <json|@file>', 'all fields in one JSON object; @- reads standard input')
    addConditions(command, row)
    command.addHelpText(
      'after',
      `\n${row.route}\n${describeFields(name, row)}\nExample:\n  $ baton call ${name}${settings(name, row)}\n`,
    )
    command.action(
      shell.guarded(async () => {
        const { set = [], body } = command.opts<{ set?: string[]; body?: string }>()
        const whole =
          body === undefined
            ? { value: undefined }
            : parseJson('the body', body.startsWith('@') ? read(body.slice(1)) : body)
        const made =
          'fault' in whole
            ? whole
            : inputOf(fieldsOf(row), slotsOf(name, row), set, whole.value, read)
        if ('fault' in made) throw new Mistake(`${made.fault}. See: baton call ${name} --help`)
        await call(command, name, row, made.input, shell)
      }),
    )
  }
}

/**
 * Returns the `--set` options of an example: all required fields, or the first field if none is
 * required.
 */
function settings(name: string, row: Row): string {
  const fields = fieldsOf(row)
  const must = [
    ...slotsOf(name, row),
    ...fields.filter(({ required }) => required).map((field) => field.name),
  ]
  return (must.length > 0 ? must : fields.slice(0, 1).map((field) => field.name))
    .map((field) => ` --set ${field}=…`)
    .join('')
}

/** Lists the operations with their summaries. Rows that are variants of others are omitted. */
export function catalog(): string {
  const rows = shown()
  const width = Math.max(...rows.map(([name]) => name.length))
  return (
    rows.map(([name, { shape }]) => `${name.padEnd(width)}  ${shape.summary}`).join('\n') +
    '\n\nShow the fields of an operation with: baton call <operation> --help'
  )
}
/** Lists the fields of a row, one per line. */
export function describeFields(name: string, row: Row): string {
  const lines = [
    ...slotsOf(name, row).map((slot) => [slot, 'text', 'required']),
    ...fieldsOf(row).map((field) => [
      field.name,
      field.choices
        ? field.choices.join('|')
        : field.form === 'whole'
          ? 'whole number'
          : field.form,
      [field.required ? 'required' : '', field.help].filter((part) => part !== '').join('; '),
    ]),
  ]
  if (lines.length === 0) return 'This operation has no fields.\n'
  const width = Math.max(...lines.map(([field = '']) => field.length))
  return (
    'Fields:\n' +
    lines
      .map(
        ([field = '', form = '', help = '']) =>
          `  ${field.padEnd(width)}  ${form}${help === '' ? '' : `  ${help}`}`,
      )
      .join('\n') +
    '\n'
  )
}

async function call(
  command: Command,
  name: string,
  row: Row,
  input: Record<string, unknown>,
  shell: Shell,
): Promise<void> {
  const { transport } = clientFor(command, shell.env)
  const { ifMatch: if_match, etag: wantsTag } = command.opts<{ ifMatch?: string; etag?: true }>()
  const { reply, etag } = await transport.exchange(
    row,
    await resolveNames(transport, name, row, input),
    { if_match },
  )
  if (wantsTag) {
    if (etag === undefined) throw new Mistake('The service sent no entity tag.')
    return shell.print(etag)
  }
  const format = command.opts<{ format?: Format }>().format
  if (reply === undefined) {
    shell.note(`${routeOf(row).method === 'DELETE' ? 'Deleted' : 'Done'}.`)
    if (isFieldFormat(format)) printReply(shell, {}, format)
    return
  }
  printReply(shell, reply, format, row.verb === 'query' ? noneOf(name, command) : undefined)
  const next = (reply as { next_cursor?: unknown }).next_cursor
  // JSON and YAML contain the cursor.
  const used = usedFormat(shell, format)
  if (typeof next === 'string' && used !== 'json' && used !== 'yaml')
    shell.note(
      'There are more results: repeat the command with ' +
        `${command.parent?.name() === 'call' ? '--set cursor=' : '--cursor '}${next}`,
    )
}

/** Returns the message for an empty list. The message repeats the filters that were given. */
function noneOf(name: string, command: Command): string {
  const given = command.options.flatMap((option) => {
    const value: unknown = command.getOptionValue(option.attributeName())
    const filter = option.attributeName().startsWith('field_') && value !== undefined
    return filter && !['--limit', '--cursor'].includes(option.long ?? '')
      ? [`${option.long} ${shownValue(value)}`]
      : []
  })
  return given.length > 0
    ? `${name} returned no results for ${given.join(' ')}.`
    : `${name} returned no results.`
}

/** Returns the value of a filter as it is written on the command line. */
const shownValue = (value: unknown): string => {
  if (value === NULL) return 'null'
  const isText = typeof value !== 'object' || (Array.isArray(value) && value.every(isString))
  return isText ? String(value) : JSON.stringify(value)
}
const isString = (value: unknown): boolean => typeof value === 'string'
