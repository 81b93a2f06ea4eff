import { Page, type PageProps } from '../../../shell/page.tsx'
export default function ComparePage(_: PageProps) {
  return <Page title="Compare">…</Page>
}
