/* SPDX-License-Identifier: Apache-2.0
 *
 * How report.html looks: light, dark, narrow and printed, without anything from outside.
 *
 * c0 to c7 are the colours of curves: Okabe and Ito's palette, which colour-blind readers tell
 * apart, its pale members darkened so that each has a contrast of at least 3 to 1 with the light
 * ground, and lightened for the dark one. Paper is always light.
 */
#include "report/report.h"

const char *const report_style[] = {
    /* colours */
    ":root{color-scheme:light dark;--ink:#1d2126;--soft:#5b6470;--line:#dfe3e8;--ground:#fff;"
    "--tint:#f4f6f8;--accent:#0b5d8c;--c0:#0072b2;--c1:#c94f00;--c2:#00805e;--c3:#b0508a;"
    "--c4:#a86c00;--c5:#2d86b8;--c6:#7d7200;--c7:#3a3f45;--ctl:#868e96}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--soft:#a2abb6;"
    "--line:#343a42;--ground:#15181c;--tint:#1e2329;--accent:#7cc4ee;--c0:#4ba9e8;--c1:#ff8f4d;"
    "--c2:#2cc598;--c3:#e595c3;--c4:#f0b23e;--c5:#9bd3f5;--c6:#e8de63;--c7:#d5dae0;"
    "--ctl:#7f8893}}\n",
    /* the page */
    "*{box-sizing:border-box}\n"
    "html{-webkit-text-size-adjust:100%}\n"
    "body{margin:0 auto;max-width:66rem;padding:2rem 1.25rem 4rem;background:var(--ground);"
    "color:var(--ink);font:16px/1.55 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\","
    "\"DejaVu Sans\",sans-serif}\n"
    "h1{font-size:1.9rem;line-height:1.2;margin:0 0 .5rem}\n"
    "h2{font-size:1.5rem;margin:3.5rem 0 .25rem;padding-top:1rem;border-top:2px solid "
    "var(--line)}\n"
    "h3,header h2{font-size:1.15rem;margin:2.5rem 0 .5rem}\n"
    "header h2{padding:0;border:0}\n"
    "h4{font-size:1rem;margin:2rem 0 .25rem}\n"
    "p,dl{max-width:46rem}\n"
    ".lead{font-size:1.1rem}\n"
    ".facts{max-width:none}\n"
    ".facts,figcaption,caption,small,.soft{color:var(--soft)}\n"
    "a{color:var(--accent)}\n"
    "nav a{margin-right:1.25rem}\n"
    "code,pre{font-family:ui-monospace,\"SFMono-Regular\",Menlo,Consolas,\"DejaVu Sans Mono\","
    "monospace;font-size:.875em}\n"
    "pre{background:var(--tint);padding:.75rem 1rem;border-radius:6px;white-space:pre-wrap;"
    "overflow-wrap:anywhere}\n"
    "pre code{font-size:1em}\n"
    "dt{font-weight:600;margin-top:.75rem}\n"
    "dd{margin:0}\n"
    "details{margin:1rem 0}\n"
    "summary{cursor:pointer;color:var(--accent)}\n",
    /* tables */
    ".scroll{overflow-x:auto;margin:1rem 0}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.94rem}\n"
    "caption{text-align:left;padding:0 0 .5rem;font-size:.96em}\n"
    /* of a table that is scrolled, the caption stays */
    "caption>span{display:block;position:sticky;left:0;max-width:min(46rem,calc(100vw - 2.5rem))}\n"
    "th,td{padding:.32rem .9rem;text-align:right;vertical-align:top;white-space:nowrap}\n"
    "th:first-child{text-align:left;padding-left:.25rem;white-space:normal;min-width:11rem;"
    "position:sticky;left:0;background:var(--ground)}\n"
    "tbody th,tfoot th{font-weight:400}\n"
    "thead th{vertical-align:bottom;font-weight:600;border-bottom:1px solid var(--soft)}\n"
    "thead small{font-weight:400}\n"
    ".kind th{padding-top:.9rem;font-size:.87em;color:var(--soft);text-transform:uppercase;"
    "letter-spacing:.04em}\n"
    "tbody tr:not(.kind):hover>*{background:var(--tint)}\n"
    "tfoot th,tfoot td{border-top:1px solid var(--line)}\n"
    "tfoot td{text-align:left}\n"
    "td small,th small{display:block;font-size:.83em;line-height:1.3}\n"
    "td i{font-style:normal;color:var(--soft)}\n"
    "th code{color:var(--soft);white-space:nowrap}\n"
    ".none{color:var(--soft)}\n"
    ".measures th,.measures td{padding-left:.55rem;padding-right:.55rem}\n"
    ".measures thead th{white-space:normal;line-height:1.25}\n"
    ".measures thead small{white-space:nowrap}\n"
    ".measures .none{font-size:.83em}\n"
    ".settings td{text-align:left;white-space:normal;max-width:18rem;overflow-wrap:anywhere}\n"
    ".settings thead th{text-align:left}\n",
    /* figures */
    "figure{margin:1.5rem 0}\n"
    "figcaption{font-size:.9rem;margin-bottom:.4rem;max-width:46rem}\n"
    ".chart>div{display:flex;flex-wrap:wrap;gap:.5rem 1.5rem;align-items:flex-start}\n"
    ".chart .plot{flex:1 1 32rem;min-width:0;max-width:48rem}\n"
    ".plot{width:100%;height:auto;overflow:visible}\n"
    ".plot text{fill:currentColor;font-size:13px;font-variant-numeric:tabular-nums}\n"
    ".legend{list-style:none;margin:1.8rem 0 0;padding:0;flex:0 1 14rem;font-size:.9rem}\n"
    ".legend li{display:flex;gap:.6rem;align-items:center;padding:.13rem 0;line-height:1.3}\n"
    ".key{flex:none;width:40px;height:14px}\n"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(22rem,100%),1fr));"
    "gap:0 2rem}\n"
    ".pair .chart{margin:.5rem 0}\n"
    ".bars>div{overflow-x:auto}\n"
    ".bars .plot{min-width:40rem;max-width:54rem}\n"
    ".grid{fill:none;stroke:var(--line)}\n"
    ".axis{fill:none;stroke:var(--soft)}\n"
    ".base{fill:none;stroke:currentColor;stroke-dasharray:7 5;opacity:.6}\n"
    ".mark{fill:none;stroke:currentColor;stroke-width:1.4}\n"
    ".whisker{fill:none;stroke:currentColor;stroke-width:1.4}\n"
    ".band{fill:currentColor;fill-opacity:.15;stroke:none}\n"
    ".bar{fill:currentColor;fill-opacity:.75}\n"
    ".c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}"
    ".c4{color:var(--c4)}.c5{color:var(--c5)}.c6{color:var(--c6)}.c7{color:var(--c7)}"
    ".ctl{color:var(--ctl)}\n"
    ".picture img{display:block;max-width:100%;height:auto;border-radius:6px;background:#fff}\n"
    ".picture figcaption{margin-top:.4rem}\n",
    /* narrow screens */
    "@media (max-width:40rem){body{padding:1.25rem .9rem 3rem;font-size:15px}"
    "h1{font-size:1.5rem}.chart .plot text{font-size:21px}.chart.small .plot text{font-size:14px}"
    ".legend{margin-top:.2rem;flex-basis:100%}th,td{padding:.3rem .55rem}"
    "th:first-child{min-width:8.5rem}}\n",
    /* paper */
    "@media print{:root{color-scheme:light}body{max-width:none;padding:0;font-size:10.5pt}"
    "figure,tr,pre{break-inside:avoid}.kind{break-after:avoid}h2,h3,h4,caption,figcaption,thead{"
    "break-"
    "after:avoid}"
    "h2{break-before:page}section:first-child h2,header "
    "h2{break-before:auto}h3+p,h4+p{break-after:avoid}"
    "tfoot{display:table-row-group}nav{display:none}.scroll,.bars>div{overflow:visible}"
    "table{font-size:8.5pt}th,td{padding:.2rem .5rem}.bars .plot{min-width:0}"
    ".chart .plot{flex-basis:24rem}.band,.bar{print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}details::details-content{content-visibility:visible;"
    "block-size:auto}th:first-child{position:static}}\n",
    NULL};
