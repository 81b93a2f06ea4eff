/**
 * The catalog entries of the actions that the worker of an environment performs. The published
 * contract defines their names, parameters and results. Only workers of environments perform them,
 * so each call needs an environment.
 */
import { object, text } from '../actions/parameters.ts'
import type { JsonObject } from '../common.ts'
import { resultSizes } from './result-sizes.ts'

/** The default timeout (`usual`) and the maximum timeout (`most`) of a command, in seconds. */
export const commandTimeouts = { usual: 300, most: 86_400 } as const

/** The catalog entry of an action that the worker of an environment performs. */
export interface EnvironmentAction {
  readonly title: string
  readonly description: string
  readonly input_schema: JsonObject
  readonly annotations: {
    readonly idempotent?: true
    readonly read_only?: true
    readonly destructive?: true
  }
  readonly risk: 'low' | 'medium' | 'high' | 'critical'
}

const path = (description: string): JsonObject => text(4096, { description })
const dir: JsonObject = path('Folder, relative to the workspace; the workspace itself by default')
const max_output_bytes: JsonObject = {
  type: 'integer',
  minimum: 1,
  maximum: resultSizes.most,
  description: `Maximum bytes of each output stream in the result; ${resultSizes.usual} by default`,
}
const repository: JsonObject = text(256, { description: 'The repository, as owner/name' })
const count = (maximum: number, description: string): JsonObject => ({
  type: 'integer',
  minimum: 1,
  maximum,
  description,
})
const flag = (description: string): JsonObject => ({ type: 'boolean', description })
const texts = (description: string): JsonObject => ({
  type: 'object',
  additionalProperties: { type: 'string' },
  description,
})

const reads = { idempotent: true, read_only: true } as const

export const environmentActions = {
  'environment.bash': {
    title: 'Run a command',
    description:
      'Run a bash command in the workspace, and get its output and exit code. Files stay for ' +
      'later calls; processes do not.',
    input_schema: object(
      {
        command: text(131_072),
        dir,
        env: texts('Further environment variables'),
        timeout_seconds: count(
          commandTimeouts.most,
          `Seconds after which the command is killed; ${commandTimeouts.usual} by default`,
        ),
        max_output_bytes,
      },
      ['command'],
    ),
    annotations: {},
    risk: 'high',
  },
  'environment.files.read': {
    title: 'Read a file',
    description: 'Read a file of the workspace, or the part of it that begins at an offset.',
    input_schema: object(
      {
        path: path('File, relative to the workspace'),
        encoding: { type: 'string', enum: ['text', 'base64'] },
        max_bytes: count(
          resultSizes.most,
          `Maximum number of bytes; ${resultSizes.usual} by default`,
        ),
        offset: {
          type: 'integer',
          minimum: 0,
          description: 'Offset of the first byte; 0 by default',
        },
      },
      ['path'],
    ),
    annotations: reads,
    risk: 'low',
  },
  'environment.files.write': {
    title: 'Write a file',
    description: 'Write a text file in the workspace. Missing folders are created.',
    input_schema: object(
      {
        path: path('File, relative to the workspace'),
        content: { type: 'string' },
        encoding: { type: 'string', enum: ['text', 'base64'] },
        append: flag('Add to the end instead of replacing the file'),
        mode: {
          type: 'string',
          pattern: '^[0-7]{3,4}$',
          description: 'Octal file mode, such as 755',
        },
      },
      ['path', 'content'],
    ),
    annotations: {},
    risk: 'medium',
  },
  'environment.files.list': {
    title: 'List files',
    description: 'List the files of a folder, the newest first.',
    input_schema: object({
      path: dir,
      recursive: flag('Include the files of subfolders'),
      max_entries: count(5000, 'Maximum number of entries; 200 by default'),
    }),
    annotations: reads,
    risk: 'low',
  },
  'environment.files.delete': {
    title: 'Delete a file',
    description: 'Delete a file or a folder of the workspace.',
    input_schema: object(
      { path: path('File or folder'), recursive: flag('Delete a folder even if it is not empty') },
      ['path'],
    ),
    annotations: { idempotent: true, destructive: true },
    risk: 'medium',
  },
  'environment.git.clone': {
    title: 'Clone a repository',
    description: 'Clone a declared repository: its default branch, a branch, or an exact commit.',
    input_schema: object(
      {
        repo_full_name: repository,
        dest: path('Folder for the clone; the name of the repository by default'),
        branch: text(255),
        depth: count(1_000_000, 'Number of commits; all by default'),
        commit: { type: 'string', pattern: '^[0-9a-fA-F]{7,64}$' },
        fetch_ref: text(512, { description: 'Reference to fetch, such as refs/pull/1/head' }),
      },
      ['repo_full_name'],
    ),
    annotations: {},
    risk: 'medium',
  },
  'environment.git.fetch': {
    title: 'Fetch from a repository',
    description: 'Fetch the branches of a clone from its remote.',
    input_schema: object({
      repo_full_name: repository,
      dir,
      remote: text(255, { description: 'Name of the remote; origin by default' }),
    }),
    annotations: { idempotent: true },
    risk: 'low',
  },
  'environment.git.status': {
    title: 'Show the state of a clone',
    description: 'Show the branch and the changed files of a clone.',
    input_schema: object({ dir, max_output_bytes }),
    annotations: reads,
    risk: 'low',
  },
  'environment.git.diff': {
    title: 'Show the changes of a clone',
    description: 'Show the changes of a clone that are not committed, as a diff.',
    input_schema: object({
      dir,
      staged: flag('The staged changes'),
      context: { type: 'integer', minimum: 0, maximum: 1000, description: 'Lines of context' },
      max_output_bytes,
    }),
    annotations: reads,
    risk: 'low',
  },
  'environment.artifact.publish': {
    title: 'Publish a file',
    description: 'Publish a file of the workspace as an artifact of the project.',
    input_schema: object(
      {
        path: path('File, relative to the workspace'),
        name: text(256, { description: 'Name of the artifact; the path by default' }),
        mime: text(256, { description: 'Media type; derived from the name by default' }),
        tags: texts('Metadata of the artifact'),
      },
      ['path'],
    ),
    annotations: {},
    risk: 'medium',
  },
  'environment.artifact.download': {
    title: 'Download an artifact',
    description: 'Write an artifact of the project to a file of the workspace.',
    input_schema: object(
      {
        artifact_id: text(128),
        dest: path('File, relative to the workspace; the name of the artifact by default'),
        max_bytes: {
          type: 'integer',
          minimum: 1,
          description: 'Maximum size in bytes; 100 MiB by default',
        },
      },
      ['artifact_id'],
    ),
    annotations: { idempotent: true },
    risk: 'low',
  },
  'environment.logs.tail': {
    title: 'Read the log of the worker',
    description: 'Read the newest lines of a log of the environment.',
    input_schema: object({
      log_name: { type: 'string', enum: ['worker', 'stdout', 'stderr', 'bootstrap'] },
      tail: count(5000, 'Maximum number of lines; 200 by default'),
      max_bytes: count(
        resultSizes.most,
        `Maximum number of bytes; ${resultSizes.usual} by default`,
      ),
    }),
    annotations: reads,
    risk: 'low',
  },
} as const satisfies Readonly<Record<string, EnvironmentAction>>

/** The name of an environment action. */
export type EnvironmentActionName = keyof typeof environmentActions
/** Whether an action is performed only by the workers of environments. */
export const isEnvironmentAction = (name: string): name is EnvironmentActionName =>
  Object.hasOwn(environmentActions, name)

/** Names of environment actions in earlier releases, with their current names. */
export const earlierActionNames = {
  'environment.artifacts.publish': 'environment.artifact.publish',
  'environment.artifacts.download': 'environment.artifact.download',
} as const satisfies Readonly<Record<string, EnvironmentActionName>>

/** The description of the workspace for models that have these actions as tools. */
export const WORKSPACE =
  'You have a workspace: a folder that the tools environment.* read, write and run commands in. ' +
  'Paths are relative to it. Files stay for your later turns; processes end with each call. ' +
  `Output above ${resultSizes.usual} bytes is shortened, and the output then states this.`
