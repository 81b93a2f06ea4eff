/**
 * Resolves the tools and the memory of a turn: the tools of the current catalog that its selectors
 * match, and the entries of its agent's memory. The rest of the definition is in `definition.ts`.
 */

import { builtinGroups } from '../../protocol/actions/builtin.ts'
import type { CatalogEntry } from '../../protocol/actions/rows.ts'
import type { MemoryContext } from '../../protocol/agents/schema.ts'
import { resolveSelectors } from '../../protocol/agents/selectors.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { SortKey } from '../../protocol/queries/views.ts'
import type { GrantedTool, TurnDefinition } from '../../protocol/sessions/turns/definition.ts'
import type { Selector } from '../../protocol/toolkits/schema.ts'
import type { World } from '../ports.ts'
import { entriesOf } from '../queries/action-catalog.ts'
import type { CapabilityReader } from '../queries/agent-capabilities.ts'
import { approversIn } from './approvers.ts'

/**
 * Returns the tools that selectors grant. An exact name that is missing in the catalog is granted
 * as a worker action, because workers may serve unregistered actions.
 */
export async function grantedTools(
  { world, directory }: CapabilityReader,
  project: string,
  selectors: readonly Selector[],
): Promise<readonly GrantedTool[] | Refusal> {
  if (selectors.length === 0) return []
  const entries = await entriesOf(world, project)
  if (isRefusal(entries)) return entries
  const groups = builtinGroups(world.settings.brand.toLowerCase())
  const { matched, unmatched } = resolveSelectors(selectors, entries, groups)
  const tools = matched.filter(usable).map(toolOf)
  const approved = tools.some(({ annotations }) => annotations.destructive)
    ? await withApprovers({ world, directory }, project, tools)
    : tools
  if (isRefusal(approved)) return approved
  return [
    ...approved,
    ...unmatched.flatMap(({ selector_type, selector }) =>
      selector_type === 'exact'
        ? [{ name: selector, annotations: {}, kind: 'worker' as const }]
        : [],
    ),
  ]
}
/** Annotates each destructive tool with the roles whose holders may approve its calls. */
async function withApprovers(
  { world, directory }: CapabilityReader,
  project: string,
  tools: readonly GrantedTool[],
): Promise<readonly GrantedTool[] | Refusal> {
  const organization = await directory.organization()
  if (isRefusal(organization)) return organization
  const home = await directory.project(project)
  if (isRefusal(home)) return home
  const approversOf = approversIn(home, organization, world.now())
  return tools.map((tool) =>
    tool.annotations.destructive ? { ...tool, approvers: approversOf(tool.name) } : tool,
  )
}
/**
 * Returns whether an action may be granted. It must be ready, or be served by workers, which may
 * connect later.
 */
const usable = ({ readiness, endpoint_kind }: CatalogEntry): boolean =>
  readiness === 'ready' || endpoint_kind === 'worker'
const toolOf = ({
  name,
  description,
  input_schema,
  annotations: { idempotent, destructive, read_only },
  endpoint_kind,
  execution,
}: CatalogEntry): GrantedTool => ({
  name,
  ...(description !== undefined && { description }),
  ...(input_schema && { input_schema }),
  kind: endpoint_kind,
  annotations: {
    ...(idempotent && { idempotent }),
    ...(destructive && { destructive }),
    ...(read_only && { read_only }),
  },
  ...(execution?.queue !== undefined && { queue: execution.queue }),
})

/** Number of memory entries per query. Pinned and more important entries are read first. */
const PAGE = 200
/** Number of memory entries after which no further page is read. */
const MAX_ENTRIES = 2000
/**
 * Returns the agent's memory as text for the model, with entries of at most `max_bytes` in total.
 * If the memory is larger, the text is truncated in the mode `index`, and replaced by a fault in
 * the mode `full`. In the mode `off`, the result is empty.
 */
export async function memoryContext(
  world: Pick<World, 'view'>,
  project: string,
  agent: string,
  { mode, max_bytes }: Required<MemoryContext>,
): Promise<Pick<TurnDefinition, 'memory' | 'memory_fault'> | Refusal> {
  if (mode === 'off') return {}
  const lines: string[] = []
  let bytes = 0
  let after: readonly SortKey[] | undefined
  do {
    const page = await world.view(project, 'memory.entries', {
      id: agent,
      limit: PAGE,
      ...(after !== undefined && { after }),
    })
    if (isRefusal(page)) return page
    for (const entry of page.items) {
      const line =
        mode === 'full'
          ? `## ${entry.key} (${entry.kind})\n${entry.content ?? ''}`
          : `- ${entry.key} (${entry.kind})${entry.summary === undefined ? '' : `: ${entry.summary}`}`
      bytes += Buffer.byteLength(line) + 1
      if (bytes > max_bytes)
        return mode === 'full'
          ? { memory_fault: `The memory of the agent is larger than ${max_bytes} bytes.` }
          : memoryOf(mode, lines)
      lines.push(line)
    }
    after = page.position
  } while (after !== undefined && lines.length < MAX_ENTRIES)
  return memoryOf(mode, lines)
}
const memoryOf = (
  mode: 'index' | 'full',
  lines: readonly string[],
): Pick<TurnDefinition, 'memory'> =>
  lines.length === 0
    ? {}
    : {
        memory: `${mode === 'full' ? '# What you remember' : '# What you remember, by key'}\n${lines.join('\n')}`,
      }
