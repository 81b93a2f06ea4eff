/** The blueprints of a project. */
import { commandOf } from '../../api/call-text.ts'
import { useQuery } from '../../api/query.ts'
import { Button, LinkButton } from '../../design/button.tsx'
import { Code, CopyCall } from '../../design/copy.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { Badge, Empty, Show } from '../../design/states.tsx'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { formatNumber } from '../../text/format.ts'
import { bindingKinds } from './binding-kinds.ts'
import { exportFile } from './export-file.ts'
import { type Group, groupHref, groupsOf, protectionOf } from './groups.ts'
import { blueprintsText as text } from './text.ts'

/** Shows whether the resources of a blueprint are protected. */
export const Protection = ({ of }: { readonly of: Group }) =>
  ({
    all: <Badge tone="good">{text.protected}</Badge>,
    some: <Badge tone="warn">{text.partlyProtected}</Badge>,
    none: <Badge>{text.open}</Badge>,
  })[protectionOf(of.bindings)]

const versionsOf = ({ bindings }: Group): string =>
  [...new Set(bindings.flatMap(({ blueprint_version }) => blueprint_version ?? []))].join(', ')

export default function BlueprintsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const input = { project, include: ['further_types' as const] }
  const { state, reload } = useQuery('blueprint.bindings', input, { kinds: bindingKinds })
  const columns: readonly Column<Group>[] = [
    {
      name: text.blueprint,
      cell: (group) => (
        <a class="user-text" href={groupHref(project, group)}>
          <strong>{group.key || text.unnamed}</strong>
        </a>
      ),
    },
    { name: text.namespace, cell: ({ namespace }) => <span class="user-text">{namespace}</span> },
    { name: text.version, cell: (group) => <span class="user-text">{versionsOf(group)}</span> },
    {
      name: text.resources,
      number: true,
      cell: ({ bindings }) => formatNumber(bindings.length),
    },
    { name: text.protection, cell: (group) => <Protection of={group} /> },
  ]
  const apply = may('project.edit') && (
    <LinkButton
      kind="primary"
      icon="upload"
      href={`/p/${encodeURIComponent(project)}/blueprints/apply`}
    >
      {text.apply}
    </LinkButton>
  )
  return (
    <Page
      title={text.title}
      actions={
        <>
          <CopyCall name="blueprint.bindings" input={input} />
          <Button icon="download" onClick={() => exportFile(project, { namespace: '', key: '' })}>
            {text.exportProject}
          </Button>
          {apply}
        </>
      }
    >
      <Show of={state.value} retry={reload}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="blueprints" title={text.none}>
              <p>{text.noneHint}</p>
              <Code>{commandOf(text.exampleCommand, project)}</Code>
            </Empty>
          ) : (
            <DataTable
              label={text.title}
              columns={columns}
              items={groupsOf(items)}
              keyOf={({ namespace, key }) => JSON.stringify([namespace, key])}
            />
          )
        }
      </Show>
    </Page>
  )
}
