// SPDX-License-Identifier: Apache-2.0
const me = await (await fetch("/api/me")).json();
document.getElementById("page").append(` You are ${me.role}.`);
