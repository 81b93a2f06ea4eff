/** The list of the loops of a project, and the dialog that creates one. */
import { useEffect } from 'preact/hooks'
import type { Loop } from '../../../protocol/loops/schema.ts'
import { useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { TableFrame } from '../../design/data-table.tsx'
import { SelectField } from '../../design/field.tsx'
import { EmptyCard, Listed } from '../../design/listed.tsx'
import { Badge } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { ListSearch, NothingFound } from '../build/list-search.tsx'
import { matchesText } from '../build/search.ts'
import { buildText } from '../build/text.ts'
import { CreateDialog } from './create.tsx'
import { loopsText as text } from './text.ts'
import { kindWords, statusOf } from './words.ts'

const STATUSES = ['active', 'paused', 'draft'] as const

function Line({ loop, base }: { readonly loop: Loop; readonly base: string }) {
  const [word, tone] = statusOf(loop.status)
  const kinds = [...new Set((loop.triggers ?? []).map(({ kind }) => kindWords[kind]))]
  return (
    <tr>
      <td>
        <a {...rowLink} class="user-text" href={`${base}/${loop.id}`}>
          {loop.name}
        </a>
        {loop.description && (
          <div class="small soft user-text">{loop.description.slice(0, 300)}</div>
        )}
      </td>
      <td>
        <Badge tone={tone}>{word}</Badge>
      </td>
      <td>{kinds.length === 0 ? text.kindManual : kinds.join(', ')}</td>
      <td>
        {loop.last_run_at ? (
          <Time at={loop.last_run_at} relative />
        ) : (
          <span class="soft">{text.never}</span>
        )}
      </td>
    </tr>
  )
}

export default function LoopsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/loops`
  const { query } = currentUrl.value
  const search = query.get('q') ?? ''
  const status = STATUSES.find((one) => one === query.get('status'))
  const list = useList(
    'loop.list',
    { project, limit: 100, ...(status && { status }) },
    { kinds: ['loop'] },
  )
  const { items, more, loading } = list.state.value
  const mayEdit = may('project.edit')
  const create = (): void => setQuery({ new: '1' }, { push: true })
  const rows = useRowKeys<HTMLTableSectionElement>()
  // A search covers all loops, so all pages are loaded.
  useEffect(() => {
    if (search !== '' && more && !loading) list.more()
  }, [search, more, loading])
  const found = items.filter(({ name, description = '', id }) =>
    matchesText(search, [name, description, id]),
  )
  const isFiltered = search !== '' || status !== undefined
  const nothingFound = <NothingFound onClear={() => setQuery({ q: '', status: '' })} />
  return (
    <Page
      title={text.title}
      actions={mayEdit && <PageAction label={text.create} keys="c" onRun={create} />}
    >
      {(items.length > 0 || isFiltered) && (
        <div class="row">
          <ListSearch value={search} />
          <SelectField
            label={text.status}
            unlabelled
            value={status ?? ''}
            choices={[
              { value: '', label: text.all },
              ...STATUSES.map((value) => ({ value, label: statusOf(value)[0] })),
            ]}
            onValue={(next) => setQuery({ status: next })}
          />
        </div>
      )}
      <Listed
        of={list}
        lines={6}
        paged={search === ''}
        empty={
          isFiltered ? (
            nothingFound
          ) : (
            <EmptyCard icon="loops" title={text.empty}>
              <p>{text.emptyHint}</p>
              {mayEdit ? (
                <Button icon="plus" onClick={create}>
                  {text.create}
                </Button>
              ) : (
                <p>{text.emptyReader}</p>
              )}
            </EmptyCard>
          )
        }
      >
        {() =>
          found.length === 0 ? (
            !loading && nothingFound
          ) : (
            <TableFrame
              label={text.title}
              headings={[buildText.name, text.status, text.triggers, text.lastRun]}
            >
              <tbody ref={rows}>
                {found.map((loop) => (
                  <Line key={loop.id} loop={loop} base={base} />
                ))}
              </tbody>
            </TableFrame>
          )
        }
      </Listed>
      {mayEdit && query.get('new') === '1' && (
        <CreateDialog project={project} onClose={() => setQuery({ new: '' })} />
      )}
    </Page>
  )
}
