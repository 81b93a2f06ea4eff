/**
 * Names of the schemas in the API reference. References to a record, request or reply use its name.
 * The shape of a schema determines its name: two schemas with the same JSON have the same name.
 */
import type { TSchema } from 'typebox'
import { ConsoleSession } from '../access/console-rows.ts'
import { CliCredential, DeviceRequest } from '../access/device-rows.ts'
import { PermissionCatalog, Role, RoleAssignment } from '../access/role-rows.ts'
import * as access from '../access/rows.ts'
import { Secret } from '../access/secret-rows.ts'
import { DeviceCode, DeviceToken, FormError } from '../access/unauthenticated-rows.ts'
import { Me } from '../access/user-rows.ts'
import { Invocation } from '../actions/invocation.ts'
import { OrganizationAction } from '../actions/organization-rows.ts'
import * as actions from '../actions/rows.ts'
import * as equipment from '../agents/capabilities.ts'
import { InlineConfig, InlineSkill, InlineToolkit } from '../agents/inline.ts'
import { ToolManifest, Warning } from '../agents/manifest.ts'
import { MessagingBinding, SetBinding } from '../agents/messaging-bindings.ts'
import { WorkerModel } from '../agents/model-rows.ts'
import { CatalogModel, CatalogProvider } from '../agents/models.ts'
import * as agents from '../agents/schema.ts'
import { Artifact, Conversion } from '../artifacts/schema.ts'
import { Reference, resourceSchemas } from '../blueprints/resources.ts'
import * as blueprints from '../blueprints/schema.ts'
import { ExchangeRecord } from '../channels/exchange.ts'
import { Channel, ChannelEventRecord, ChannelMember, ChannelMessage } from '../channels/schema.ts'
import type { Shape } from '../contract.ts'
import * as environments from '../environments/schema.ts'
import * as events from '../events/rows.ts'
import { Links } from '../interactions/rows.ts'
import * as interaction from '../interactions/schema.ts'
import { RunLogLine } from '../jobs/logs.ts'
import { Queue } from '../jobs/queue-rows.ts'
import { ActionLogEntry, Job } from '../jobs/rows.ts'
import { TriggerStanding } from '../loops/rows.ts'
import { LoopRun, RunSource } from '../loops/run.ts'
import { Loop, Repository, Trigger } from '../loops/schema.ts'
import { McpAnswer, McpMessage, McpNotice } from '../mcp/messages.ts'
import * as memory from '../memory/schema.ts'
import { SavedView } from '../preferences/schema.ts'
import { AuditEntry, Project } from '../projects/rows.ts'
import { isJsonObject } from '../rules/json-object.ts'
import { BulkRunRequest, Reason, StartWorkflowRun } from '../runs/requests.ts'
import { BulkRunResult } from '../runs/rows.ts'
import * as runs from '../runs/schema.ts'
import { WaitingOn } from '../runs/waiting.ts'
import { Attached } from '../sessions/attachments.ts'
import { ApplicationContext, Operation, Output } from '../sessions/requests.ts'
import { Retention } from '../sessions/retention.ts'
import * as sessions from '../sessions/schema.ts'
import * as blocks from '../sessions/turns/blocks.ts'
import { SkillUsage } from '../skills/rows.ts'
import { ImportSkill, Skill, SkillBody } from '../skills/schema.ts'
import { Column, TableIndex, TableSchema } from '../tables/schema.ts'
import { Selector, Toolkit, ToolkitBody } from '../toolkits/schema.ts'
import { UsageEvent } from '../usage/rows.ts'
import { DeliveryRecord, Webhook } from '../webhooks/rows.ts'
import { Worker } from '../workers/rows.ts'
import { Workflow, WorkflowVersion } from '../workflows/rows.ts'
import { SavedWarning } from '../workflows/saved-warnings.ts'
import { DeclaredInput, Defaults, Environment, Limits, RunName, Spec } from '../workflows/spec.ts'
import * as steps from '../workflows/steps.ts'

/**
 * The schemas with explicit names, by name. The name of any other body or reply is derived: for a
 * list, from the name of its items; otherwise, from the first operation that uses the shape.
 */
const chosen: Readonly<Record<string, unknown>> = {
  ...Object.fromEntries(
    Object.entries(resourceSchemas).map(([type, schema]) => [
      `Blueprint${type.slice(0, 1).toUpperCase()}${type.slice(1)}`,
      schema,
    ]),
  ),
  BlueprintActionAnnotations: resourceSchemas.action.properties.annotations,
  BlueprintFieldDifference: blueprints.FieldDifference,
  ToolkitGrant: ToolkitBody.properties.actions.items,
  AcceptedEvent: events.Accepted,
  Action: actions.Action,
  ActionAnnotations: actions.Annotations,
  ActionLogEntry,
  ActionStep: steps.ActionStep,
  Agent: agents.Agent,
  BulkRunOutcome: BulkRunResult.properties.results.items,
  BulkRunFault: BulkRunResult.properties.results.items.properties.error,
  Caller: Me.properties.principal,
  ConsoleSession,
  Queue,
  RunLogLine,
  SavedViewSort: SavedView.properties.sort,
  AgentMemory: memory.AgentMemory,
  AgentOperation: Operation,
  AgentOutput: Output,
  AgentStep: steps.AgentStep,
  AgentTurn: sessions.AgentTurn,
  ApiKey: access.ApiKey,
  ApiKeyCreated: access.ApiKeyCreated,
  ApplicationContext,
  Artifact,
  ArtifactConversion: Conversion,
  Assertion: steps.Assertion,
  AssignSkills: equipment.AssignSkills,
  AssignToolkits: equipment.AssignToolkits,
  Attached,
  AuditEntry,
  Block: blocks.Block,
  BlueprintBinding: blueprints.Binding,
  BlueprintChange: blueprints.Change,
  BlueprintDrift: blueprints.DriftItem,
  BlueprintReference: Reference,
  BlueprintReferenceElsewhere: Reference.properties.blueprint_ref,
  BulkRunRequest,
  BulkRunResult,
  CatalogEntry: actions.CatalogEntry,
  CatalogModel,
  CatalogProvider,
  Channel,
  ChannelEventRecord,
  ChannelMember,
  ChannelExchange: ExchangeRecord,
  ChannelMessage,
  CheckStep: steps.CheckStep,
  CleanupStep: steps.CleanupStep,
  CliCredential,
  CompactionPolicy: agents.CompactionPolicy,
  CompactionProgress: sessions.CompactionProgress,
  CreateAgent: agents.CreateAgent,
  DeclaredInput,
  DeliveryRecord,
  DeviceCode,
  DeviceRequest,
  DeviceToken,
  DocumentBlock: blocks.Document,
  Environment: environments.Environment,
  EnvironmentHolder: environments.Holder,
  EnvironmentRepository: environments.EnvironmentRepository,
  EventAccepted: events.EventAccepted,
  EventCatalog: events.EventCatalog,
  EventCatalogEntry: events.EventCatalog.properties.items.items,
  FormError,
  ForEachStep: steps.ForEachStep,
  ImageBlock: blocks.Image,
  ImportSkill,
  InlineConfig,
  InlineSkill,
  InlineToolkit,
  Interaction: interaction.Interaction,
  InteractionConsumer: interaction.Consumer,
  InteractionConsumerHttp: interaction.HttpConsumer,
  InteractionConsumerRun: interaction.RunConsumer,
  InteractionConsumerTool: interaction.ToolConsumer,
  InteractionDelivery: interaction.Delivery,
  InteractionLifecycleEvent: interaction.LifecycleEvent,
  InteractionLink: Links.properties.items.items,
  InteractionLinks: Links,
  InteractionOption: interaction.Option,
  InteractionPerson: interaction.Person,
  InteractionQuestion: interaction.Question,
  InteractionReference: interaction.Reference,
  InteractionResponse: interaction.Response,
  InteractionStep: steps.InteractionStep,
  Invocation,
  InvokeResult: actions.InvokeResult,
  Job,
  LatestCompaction: sessions.LatestCompaction,
  Loop,
  LoopRun,
  LoopRunSource: RunSource,
  LoopStep: steps.LoopStep,
  McpAnswer,
  McpMessage,
  McpNotice,
  Me,
  MemoryChange: memory.MemoryChange,
  MemoryContext: agents.MemoryContext,
  MemoryEntry: memory.MemoryEntry,
  MessagingBinding,
  ModelRoute: agents.ModelRoute,
  NudgeAck: sessions.NudgeAck,
  OrganizationAction,
  ParallelStep: steps.ParallelStep,
  Permission: PermissionCatalog.properties.items.items,
  PermissionActionGroup: PermissionCatalog.properties.action_groups.items,
  PermissionCatalog,
  PermissionPreset: PermissionCatalog.properties.presets.items,
  PlainStep: steps.PlainStep,
  PrincipalRecord: access.PrincipalRecord,
  Project,
  ProjectRunEvent: runs.ProjectRunEvent,
  Reason,
  ReminderBlock: blocks.Reminder,
  Repository,
  ResolutionPolicy: interaction.Policy,
  ResolvedAction: blocks.ResolvedAction,
  Retention,
  Role,
  RoleAssignment,
  Run: runs.Run,
  RunEventPage: runs.RunEventPage,
  RunEventRecord: runs.RunEventRecord,
  RunStep: runs.RunStep,
  SaveMemory: memory.SaveMemory,
  Secret,
  SecretRotated: actions.SecretRotated,
  Session: sessions.Session,
  SessionDetail: sessions.SessionDetail,
  SessionMessage: sessions.SessionMessage,
  SessionMessagePage: sessions.MessagePage,
  SessionNudge: sessions.SessionNudge,
  SessionPolicy: steps.SessionPolicy,
  SessionTurnRef: sessions.TurnRef,
  SetBinding,
  Skill,
  SkillAssignment: equipment.SkillAssignment,
  SkillBody,
  SkillUsage,
  SleepStep: steps.SleepStep,
  SourceEventRecord: events.SourceEventRecord,
  Spec,
  SpecDefaults: Defaults,
  SpecEnvironment: Environment,
  SpecLimits: Limits,
  SpecRunName: RunName,
  StartWorkflowRun,
  Step: steps.Step,
  StepRetry: steps.StepRetry,
  StepTimeout: steps.StepTimeout,
  TableColumn: Column,
  TableIndex,
  TableSchema,
  TextBlock: blocks.Text,
  ThinkingBlock: blocks.Thinking,
  TokenUsage: sessions.Usage,
  ToolManifest,
  ToolManifestWarning: Warning,
  ToolResultBlock: blocks.ToolResult,
  ToolUseBlock: blocks.ToolUse,
  Toolkit,
  ToolkitAssignment: equipment.ToolkitAssignment,
  ToolkitBody,
  ToolkitSelector: Selector,
  TranscriptMessage: sessions.TranscriptMessage,
  TranscriptSnapshot: sessions.TranscriptSnapshot,
  TranscriptTurn: sessions.TranscriptTurn,
  Trigger,
  TriggerStanding,
  TurnAck: sessions.TurnAck,
  TurnWait: sessions.Wait,
  UpdateAgent: agents.UpdateAgent,
  UsageEvent,
  WaitStep: steps.WaitStep,
  WaitingOn,
  SavedWarning,
  Webhook,
  Worker,
  WorkerModel,
  Workflow,
  WorkflowRun: runs.WorkflowRun,
  WorkflowRunDetail: runs.WorkflowRunDetail,
  WorkflowVersion,
}

const REFERENCE = /"#\/components\/schemas\/(\w+)"/g
type Json = Readonly<Record<string, unknown>>
/** Whether a schema gets a name: it is an object with properties, or a union. */
const isShape = (schema: unknown): schema is Json =>
  isJsonObject(schema) &&
  (Array.isArray(schema['anyOf']) ||
    (isJsonObject(schema['properties']) && Object.keys(schema['properties']).length > 0))

interface Described {
  readonly shape: Pick<Shape, 'body' | 'reply' | 'tag'>
}

/** The named schemas of a document. */
export interface Names {
  /**
   * Converts a schema to plain JSON in which every named schema is a reference, including the
   * schema itself.
   */
  readonly reference: (schema: unknown) => unknown
  /** Converts a schema to plain JSON in which only the named schemas inside it are references. */
  readonly written: (schema: unknown) => unknown
  /**
   * Returns the schemas that a part of a document refers to, directly or through other schemas, by
   * name in alphabetical order.
   */
  readonly components: (part: unknown) => Json
}

/**
 * Assigns names to the schemas of operations.
 * @param operations by operation name.
 * @param more additional schemas, by the names that they get unless their shapes already have
 *   names.
 * @throws Error when two different schemas would get the same name.
 */
export function nameSchemas(
  operations: Readonly<Record<string, Described>>,
  more: Readonly<Record<string, TSchema>> = {},
): Names {
  const texts = new WeakMap<object, string>()
  const textOf = (schema: object): string => {
    let text = texts.get(schema)
    if (text === undefined) texts.set(schema, (text = JSON.stringify(schema)))
    return text
  }
  const names = new Map<string, string>()
  const schemas = new Map<string, unknown>()
  const give = (name: string, schema: object): void => {
    const text = textOf(schema)
    if (names.has(text)) return
    if (schemas.has(name)) throw new Error(`two schemas are named ${name}`)
    names.set(text, name)
    schemas.set(name, schema)
  }
  for (const [name, schema] of Object.entries(chosen)) if (isJsonObject(schema)) give(name, schema)
  for (const [name, schema] of Object.entries(more)) give(name, schema)
  const listName = (schema: Json): string | undefined => {
    const { items, has_more } = isJsonObject(schema['properties']) ? schema['properties'] : {}
    const item = isJsonObject(items) ? items['items'] : undefined
    const name = isJsonObject(item) ? names.get(textOf(item)) : undefined
    if (name === undefined) return undefined
    return `${name}${has_more ? 'Page' : 'List'}`
  }
  const ordered = Object.entries(operations).sort(
    ([, a], [, b]) => Number(a.shape.tag === 'compat') - Number(b.shape.tag === 'compat'),
  )
  for (const [operation, { shape }] of ordered)
    for (const [schema, what] of [
      [shape.body, 'Request'],
      [shape.reply, 'Reply'],
    ] as const) {
      if (!isShape(schema) || names.has(textOf(schema))) continue
      const list = what === 'Reply' ? listName(schema) : undefined
      give(list !== undefined && !schemas.has(list) ? list : pascal(operation) + what, schema)
    }
  const plain = (schema: unknown, top?: unknown): unknown => {
    if (Array.isArray(schema)) return schema.map((item) => plain(item))
    if (!isJsonObject(schema)) return schema
    const name = schema === top || !isShape(schema) ? undefined : names.get(textOf(schema))
    if (name !== undefined) return { $ref: `#/components/schemas/${name}` }
    return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, plain(value)]))
  }
  const written = (schema: unknown): unknown => plain(schema, schema)
  return {
    reference: (schema) => plain(schema),
    written,
    components: (part) => {
      const found = new Map<string, unknown>()
      const visit = (value: unknown): void => {
        for (const [, name = ''] of JSON.stringify(value).matchAll(REFERENCE)) {
          if (found.has(name) || !schemas.has(name)) continue
          const schema = written(schemas.get(name))
          found.set(name, schema)
          visit(schema)
        }
      }
      visit(part)
      return Object.fromEntries([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
    },
  }
}

/** Converts an operation name such as `run.cancel_many` to `RunCancelMany`. */
export const pascal = (operation: string): string =>
  operation.replaceAll(/(?:^|[._])(\w)/g, (_, first: string) => first.toUpperCase())
